#include "sentinel.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <limits>

#include "../../resp/errors.hpp"

namespace holdfast::redis {
namespace {

constexpr std::string_view channel = "+switch-master";

/// The address: as the failover's leader has it before it tells anybody. SENTINEL MASTER has the
/// old one there for seconds, with the new epoch.
constexpr std::string_view asks_address = "GET-MASTER-ADDR-BY-NAME";

/// Names the connection. A user who may not do that goes without.
class Naming final : public resp::Greeting {
public:
    unsigned ask(const Target& target, std::string& out) override {
        if (target.client_name.empty()) return 0;
        Command c;
        c.add("CLIENT").add("SETNAME").add(target.client_name);
        c.encode(out);
        return 1;
    }
    spi::Failure answered(unsigned, const Reply&) override { return {}; }
};

resp::Greeting& naming() noexcept {
    static Naming one;
    return one;
}
[[maybe_unused]] const auto& naming_at_load = naming();

}  // namespace

Sentinel::Sentinel(asio::any_io_executor e, Target t, tls::Context* tls, std::string name,
                   milliseconds patience, milliseconds connecting, Listener listener)
    : executor_(std::move(e)),
      server_(std::make_shared<Server>(std::move(t))),
      tls_(tls),
      name_(std::move(name)),
      patience_(patience),
      connecting_(connecting),
      listener_(std::move(listener)),
      timer_(executor_) {
    server_->greeting = &naming();
}

void Sentinel::ask() {
    if (closed_) return;
    if (asking_) {
        again_ = true;
        return;
    }
    asking_ = true;
    if (pipeline_) return send();
    limit();
    if (opening_) return;
    opening_ = std::make_shared<Link>(executor_, server_, tls_);
    auto task = connect();
    asio::co_spawn(executor_, std::move(task), asio::detached);
}

void Sentinel::limit() {
    timer_.expires_after(patience_);
    timer_.async_wait([weak = weak_from_this()](error_code stopped) {
        const auto self = weak.lock();
        if (stopped || !self || !self->asking_) return;
        // It was on its way here when the timer was set anew.
        if (self->timer_.expiry() <= std::chrono::steady_clock::now()) self->unanswered();
    });
}

asio::awaitable<void> Sentinel::connect() {
    const auto self = shared_from_this();
    const auto link = opening_;
    spi::Failure failed;
    try {
        failed = co_await link->open(boot_clock::now() + connecting_);
        // Given up meanwhile, and perhaps asked again since.
        if (opening_ != link || closed_) {
            link->close();
            co_return;
        }
        opening_.reset();
        if (!failed) {
            pipeline_ = std::make_shared<Pipeline>(link, self);
            pipeline_->start();
            // The question that it was opened for may have failed meanwhile.
            asking_ ? send() : ask();
        }
    } catch (const std::exception& e) {
        failed = {make(Error::refused), e.what()};
    }
    if (!failed) co_return;
    // Which password it is about.
    if (failed.why == errc::denied)
        failed.detail =
            server_->target.display + ": " + failed.text() + " (sentinel_password_file)";
    fail(std::move(failed));
}

void Sentinel::send() {
    limit();
    naming_ = {};
    naming_.asked = boot_clock::now();
    refused_ = {};
    std::string& out = pipeline_->out();
    Command c;
    const auto add = [&](Step step, std::initializer_list<std::string_view> words) {
        c.clear();
        for (const std::string_view word : words)
            c.add(word);
        c.encode(out);
        steps_.push_back(step);
        server_->requests.fetch_add(1, std::memory_order_relaxed);
    };
    // Sent together and executed together: no switch is missed between answer and subscription.
    if (subscribed_) add(Step::unsubscribe, {"UNSUBSCRIBE", channel});
    add(Step::address, {"SENTINEL", asks_address, name_});
    add(Step::facts, {"SENTINEL", "MASTER", name_});
    if (!deaf_) add(Step::subscribe, {"SUBSCRIBE", channel});
    pipeline_->send();
}

bool Sentinel::take(Reply& r) {
    const auto items = r.items();
    if (r.is(Reply::Type::array) && items.size() == 3 && items[0].text == "message") {
        std::string_view rest = items[2].text;
        switched_ = switched_ || word(rest) == name_;
        return true;
    }
    if (steps_.empty()) return false;
    const Step step = steps_.front();
    steps_.pop_front();
    switch (step) {
        case Step::unsubscribe:
            subscribed_ = false;
            break;
        case Step::address:
            address(r);
            break;
        case Step::facts:
            details(r);
            break;
        case Step::subscribe:
            subscribed(r);
    }
    return true;
}

void Sentinel::address(const Reply& r) {
    const auto items = r.items();
    if (r.is(Reply::Type::error))
        refused_ = {from_reply(r.text),
                    server_->target.display + ": " + std::string(shown(r.text))};
    else if (!r.is(Reply::Type::array))
        refused_ = {make(Error::unknown_primary),
                    server_->target.display + " watches no primary named \"" + name_ + "\""};
    else if (const auto port = items.size() == 2 ? number(items[1].text) : 0;
             port <= 0 || port > std::numeric_limits<std::uint16_t>::max())
        refused_ = {make(Error::protocol), server_->target.display + " is no Sentinel"};
    else
        naming_.primary = {items[0].text, static_cast<std::uint16_t>(port)};
}

void Sentinel::details(const Reply& r) {
    const auto items = r.items();
    for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
        const std::string& key = items[i].text;
        const std::string& value = items[i + 1].text;
        if (key == "config-epoch")
            naming_.epoch = static_cast<std::uint64_t>(number(value));
        else if (key == "quorum" || key == "num-other-sentinels" ||
                 key == "down-after-milliseconds")
            facts_.insert_or_assign(key, value);
    }
    if (!refused_ && r.is(Reply::Type::error))
        refused_ = {from_reply(r.text),
                    server_->target.display + ": " + std::string(shown(r.text))};
    answered_ = true;
}

void Sentinel::subscribed(const Reply& r) {
    subscribed_ = r.is(Reply::Type::array);
    if (subscribed_ || std::exchange(deaf_, true)) return;
    listener_.warn(server_->target.display + ": SUBSCRIBE was refused (" +
                   std::string(shown(r.text)) +
                   "): a switch of the primary is noticed later; ACL SETUSER the Sentinel's user "
                   "+subscribe +unsubscribe &+switch-master");
}

void Sentinel::settled() {
    if (std::exchange(answered_, false)) {
        failed_ = refused_;
        if (refused_.why == make(Error::unknown_primary)) last_.reset();
        if (!refused_) last_ = naming_;
        end();
    }
    if (std::exchange(switched_, false) && !closed_) listener_.switched();
}

void Sentinel::broke(Error why) {
    pipeline_.reset();
    fail({make(why), server_->target.display + ": " + make(why).message()});
}

void Sentinel::unanswered() {
    if (!opening_)
        return fail({make(Error::no_answer), server_->target.display + ": no answer in time"});
    // From far away a connection takes longer than an answer: the next question finds it.
    failed_ = {make(Error::no_answer), opening_->unanswered()};
    end();
}

void Sentinel::fail(spi::Failure why) {
    if (opening_) std::exchange(opening_, nullptr)->close();
    if (pipeline_) std::exchange(pipeline_, nullptr)->close();
    steps_.clear();
    subscribed_ = answered_ = false;
    failed_ = std::move(why);
    end();
}

void Sentinel::end() {
    timer_.cancel();
    asking_ = false;
    if (closed_) return;
    if (std::exchange(again_, false)) ask();
    listener_.told();
}

void Sentinel::close() noexcept {
    closed_ = true;
    timer_.cancel();
    if (opening_) std::exchange(opening_, nullptr)->close();
    if (pipeline_) std::exchange(pipeline_, nullptr)->close();
}

}  // namespace holdfast::redis
