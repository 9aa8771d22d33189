#include "drive.hpp"

#include <algorithm>
#include <boost/asio/steady_timer.hpp>

namespace holdfast::redlock {
namespace {

class Drive final : public Running, public std::enable_shared_from_this<Drive> {
public:
    Drive(std::shared_ptr<Fabric> f, std::shared_ptr<Round> r, std::function<void()> done)
        : fabric_(std::move(f)),
          round_(std::move(r)),
          done_(std::move(done)),
          timer_(fabric_->executor) {}

    void start() {
        const auto now = boot_clock::now();
        fabric_->running.push_back(*this);
        round_->begin(now);
        for (std::size_t i = 0; i < fabric_->lines.size(); ++i) {
            if (round_->wants(i)) continue;
            if (!fabric_->set->votes(i, now))
                fabric_->warn(fabric_->set->where(i) +
                              ": it started recently and does not vote until max_ttl has passed; "
                              "if it keeps every write, durable=yes lets it vote at once");
            fabric_->lines[i]->look();
        }
        timer_.expires_at(spi::net::steady(round_->deadline));
        timer_.async_wait([self = shared_from_this()](error_code ec) {
            if (!ec && !self->over_) self->finish(boot_clock::now());
        });
        advance();
    }
    void stop(boot_clock::time_point now) override {
        const auto self = shared_from_this();
        finish(now);
    }

private:
    /// Asks whom the round wants asked, until it waits for answers or is over.
    void advance() {
        busy_ = true;  // a line may answer inside ask()
        for (;;) {
            const auto now = boot_clock::now();
            if (round_->phase(now) != Round::Phase::open) return finish(now);
            bool any = false;
            for (std::size_t i = 0; i < fabric_->lines.size(); ++i)
                if (round_->wants(i)) ask(i), any = true;
            if (!any) break;
        }
        busy_ = false;
    }
    void ask(std::size_t node) {
        Line::Request r{round_->request()};
        r.done = [self = shared_from_this(), node, number = round_->asked(node)](
                     const Reply* reply, const error_code& why, bool sent) {
            if (reply != nullptr)
                self->round_->answered(node, number, *reply, boot_clock::now());
            else
                self->round_->missing(node, number, why, {}, sent);
            if (!self->busy_ && !self->over_) self->advance();
        };
        if (round_->ages())
            r.wanted = [round = round_, node] { return round->useful(node, boot_clock::now()); };
        fabric_->lines[node]->ask(std::move(r), fabric_->patient());
    }
    void finish(boot_clock::time_point now) {
        over_ = true;
        hook.unlink();
        timer_.cancel();
        round_->finish(now);
        std::exchange(done_, {})();
    }

    const std::shared_ptr<Fabric> fabric_;
    const std::shared_ptr<Round> round_;
    std::function<void()> done_;
    asio::steady_timer timer_;
    bool busy_ = false, over_ = false;
};

}  // namespace

void drive(std::shared_ptr<Fabric> f, std::shared_ptr<Round> r, std::function<void()> done) {
    std::make_shared<Drive>(std::move(f), std::move(r), std::move(done))->start();
}

void Fabric::owe(std::size_t node, const Ask& release, boot_clock::time_point again,
                 milliseconds ttl) {
    // The key cannot outlive a request that came at the last moment.
    const auto until = std::max(boot_clock::now(), again) + ttl + milliseconds(500);
    lines[node]->owe(release, again, until);
}

void Fabric::extend(std::size_t node, const Ask& enter, const std::shared_ptr<void>& place) {
    Place* const p = find_place(place);
    if (p->leaving) return Place::arrived(p->repairs, node);
    Line::Request r{enter};
    r.wanted = [place] { return !find_place(place)->leaving; };
    r.done = [place, node](const Reply* reply, const error_code&, bool sent) {
        if (reply != nullptr || !sent) Place::arrived(find_place(place)->repairs, node);
        // The next one will ask so.
        if (reply != nullptr && vote_from(*reply, false).kind == Vote::Kind::units)
            find_place(place)->units = true;
    };
    lines[node]->ask(std::move(r), false);
}

void Fabric::stop() {
    const auto now = boot_clock::now();
    while (!running.empty())
        running.front().stop(now);
    const std::lock_guard hold(mutex);
    for (const Asked* a : asked)
        for (std::size_t i = 0; a->open && i < lines.size(); ++i)
            owe(i, undo_ask(a->key, a->value, a->shared), a->deadline, a->ttl);
}

Together::Together(const Fabric& f) : fabric_(f) {
    for (const auto& line : fabric_.lines)
        line->gather();
}

Together::~Together() {
    for (const auto& line : fabric_.lines)
        line->send();
}

}  // namespace holdfast::redlock
