#include "sentinels.hpp"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "../../resp/errors.hpp"
#include "../../resp/majority.hpp"
#include "holdfast/spi/net/endpoint.hpp"

namespace holdfast::redis {
namespace {

// After a switch, until a majority has learnt of it.
constexpr milliseconds shortest_pause{50};
// A look is cheap, and a longer ttl should not mean a longer time at a former primary.
constexpr milliseconds longest_interval{5000}, shortest_interval{100};

}  // namespace

Sentinels::Sentinels(asio::any_io_executor e, const spi::Settings& s, std::weak_ptr<Server> server,
                     tls::Context* tls, Listener listener)
    : executor_(std::move(e)),
      server_(std::move(server)),
      listener_(std::move(listener)),
      name_(primary_of(s.path)->name),
      interval_(std::clamp(s.duration("ttl") / 3, shortest_interval, longest_interval)),
      patience_(patience_with_answers(s)),
      pause_(executor_) {
    for (const spi::Endpoint& host : s.hosts) {
        Sentinel::Listener one;
        one.told = [this] { judge(); };
        one.switched = [this] {
            hurry_ = true;
            pause_.cancel();
        };
        one.warn = listener_.warn;
        Target target = sentinel_target(s, host);
        tls::Context* const secure = target.tls.on ? tls : nullptr;
        all_.push_back(std::make_shared<Sentinel>(executor_, std::move(target), secure, name_,
                                                  patience_, s.duration("request_timeout"),
                                                  std::move(one)));
    }
}

std::size_t Sentinels::answered_since(boot_clock::time_point t) const noexcept {
    return static_cast<std::size_t>(std::count_if(all_.begin(), all_.end(), [t](const auto& s) {
        return s->last() && s->last()->asked >= t;
    }));
}

bool Sentinels::most_answered_since(boot_clock::time_point t) const noexcept {
    return answered_since(t) >= majority(all_.size());
}

bool Sentinels::any_asked() const noexcept {
    return std::any_of(all_.begin(), all_.end(), [](const auto& s) { return s->asking(); });
}

void Sentinels::ask() {
    for (const auto& s : all_)
        s->ask();
}

asio::awaitable<spi::Answer<Location>> Sentinels::find(boot_clock::time_point deadline) {
    const auto self = shared_from_this();
    const auto begun = boot_clock::now();
    auto asking = ask_until(deadline, [this, begun] { return most_answered_since(begun); });
    co_await std::move(asking);
    const auto server = server_.lock();
    if (closed_ || !server) co_return spi::Failure(errc::closed);
    if (answered_since(begun) == 0 || !current_) co_return none();
    Location place;
    place.move = server->moves();
    place.host = current_->host;
    place.text = spi::text_of(*current_) + ", the primary of " + server->target.display;
    auto looking = endpoints_of(names_, current_->host, current_->port, deadline);
    auto found = co_await std::move(looking);
    if (!found) co_return judged(found.error());
    place.endpoints = std::move(*found);
    co_return place;
}

std::string Sentinels::unanswered() const {
    return none().text();
}

spi::Failure Sentinels::none() const {
    spi::Failure why(make(Error::no_sentinel));
    std::size_t unknown = 0, insecure = 0;
    for (const auto& s : all_) {
        const spi::Failure& failed = s->failed();
        if (!failed) continue;
        why.detail += (why.detail.empty() ? "" : "; ") + failed.text();
        // A refusal that repeating does not end is the answer.
        if (failed.why == errc::denied || failed.why == errc::bad_config) why.why = failed.why;
        unknown += failed.why == make(Error::unknown_primary) ? 1 : 0;
        insecure += failed.why == make(Error::tls) ? 1 : 0;
    }
    if (why.why == make(Error::unknown_primary) && unknown < all_.size())
        why.why = make(Error::no_sentinel);
    if (why.why == make(Error::no_sentinel) && insecure >= majority(all_.size()))
        why.why = make(Error::tls);
    if (why.detail.empty()) why.detail = "the Sentinels have not answered in time";
    return why;
}

spi::Failure Sentinels::judged(spi::Failure failed) const {
    const auto recently = boot_clock::now() - 2 * interval_ - patience_;
    if (failed.why == make(Error::no_primary) || failed.why == make(Error::tls) ||
        failed.why != errc::unavailable || !current_ || !most_answered_since(recently))
        return failed;
    return {make(Error::no_primary),
            "the Sentinels name " + spi::text_of(*current_) + " as the primary: " + failed.text()};
}

void Sentinels::judge() {
    const auto server = server_.lock();
    if (closed_ || !server) return;
    // An old answer of one that has gone must not outvote those that are there.
    const auto forgotten = boot_clock::now() - 4 * interval_;
    std::vector<std::optional<Named>> last;
    for (const auto& s : all_)
        last.push_back(s->last() && s->last()->asked >= forgotten ? s->last() : std::nullopt);
    const Agreement found = agree(last);
    const bool decided = most_answered_since(forgotten) || !any_asked();
    if (found.best != nullptr && decided) {
        const auto from = std::exchange(current_, found.best->primary);
        const bool moves = from && *from != *current_;
        if (moves) server->moved();
        server->confirm(found.confirmed);
        if (moves) {
            hurry_ = true;  // until a majority has learnt of it, too
            pause_.cancel();
            listener_.moved(spi::text_of(*from), spi::text_of(*current_));
        }
    }
    gate_.open();
}

asio::awaitable<void> Sentinels::confirm(unsigned move, boot_clock::time_point deadline) {
    const auto server = server_.lock();
    if (!server) co_return;
    const auto begun = boot_clock::now();
    auto asking =
        ask_until(deadline, [server, move, begun] { return server->confirmed(move) >= begun; });
    co_await std::move(asking);
}

asio::awaitable<void> Sentinels::ask_until(boot_clock::time_point deadline,
                                           std::function<bool()> enough) {
    const auto self = shared_from_this();
    start();
    ask();
    while (!closed_ && any_asked() && !enough() && boot_clock::now() < deadline) {
        auto wait = gate_.wait(executor_, deadline);
        co_await std::move(wait);
    }
}

spi::Failure Sentinels::doubt() const {
    const std::string named = current_ ? spi::text_of(*current_) : "no primary";
    spi::Failure why = none();
    why.detail = "no majority of the Sentinels has confirmed " + named + " in time: " + why.text();
    if (why.why != make(Error::tls)) why.why = make(Error::unconfirmed);
    return why;
}

void Sentinels::start() {
    if (std::exchange(watching_, true)) return;
    auto task = watch();
    asio::co_spawn(executor_, std::move(task),
                   [self = shared_from_this()](const std::exception_ptr& failed) {
                       if (failed) self->watching_ = false;  // the next question begins anew
                   });
}

asio::awaitable<void> Sentinels::watch() {
    const auto self = shared_from_this();
    milliseconds pause = interval_;
    while (!closed_) {
        pause_.expires_after(pause);
        error_code ignored;
        auto token = asio::redirect_error(asio::use_awaitable, ignored);
        co_await pause_.async_wait(token);
        const auto server = server_.lock();
        if (closed_ || !server) break;
        const auto confirmed = server->confirmed(server->moves());
        const bool sure = !std::exchange(hurry_, false) &&
                          confirmed > boot_clock::now() - interval_ - 2 * patience_;
        pause =
            sure ? interval_ : std::min(pause == interval_ ? shortest_pause : 2 * pause, interval_);
        ask();
    }
}

void Sentinels::close() noexcept {
    closed_ = true;
    for (const auto& s : all_)
        s->close();
    pause_.cancel();
    gate_.open();
}

}  // namespace holdfast::redis
