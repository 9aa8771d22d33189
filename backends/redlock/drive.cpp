#include "drive.hpp"

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <boost/scope_exit.hpp>

namespace holdfast::redlock {
namespace {

class Drive final : public ActiveRound, public std::enable_shared_from_this<Drive> {
public:
    Drive(std::shared_ptr<Deployment> f, std::shared_ptr<Round> r, std::function<void()> done)
        : deployment_(std::move(f)),
          round_(std::move(r)),
          done_(std::move(done)),
          timer_(deployment_->executor),
          open_(deployment_->connections.size(), 0U) {}

    void start() {
        const auto now = boot_clock::now();
        round_->begin(now);
        over_ = false;
        deployment_->running.push_back(*this);
        for (std::size_t i = 0; i < deployment_->connections.size(); ++i) {
            if (round_->wants(i)) continue;
            if (!deployment_->set->votes(i, now))
                deployment_->warn(
                    deployment_->set->where(i) +
                    ": it started recently and does not vote until max_ttl has passed; "
                    "if it keeps every write, durable=yes lets it vote at once");
            deployment_->connections[i]->look();
        }
        finish_at(round_->deadline);
        advance();
    }
    void stop(boot_clock::time_point now) override {
        const auto self = shared_from_this();
        if (!over_) finish(now);
    }

private:
    /// Asks the nodes that the round wants asked, until it waits for answers or is over.
    void advance() {
        busy_ = true;  // a line may answer inside ask()
        for (;;) {
            const auto now = boot_clock::now();
            const auto phase = round_->phase(now);
            if (phase == Round::Phase::decided && awaits(now)) break;
            if (phase != Round::Phase::open) return finish(now);
            bool any = false;
            for (std::size_t i = 0; i < deployment_->connections.size(); ++i)
                if (round_->wants(i)) ask(i), any = true;
            if (!any) break;
        }
        busy_ = false;
    }
    void finish_at(boot_clock::time_point at) {
        timer_.expires_at(spi::net::steady(at));
        timer_.async_wait([self = shared_from_this()](error_code ec) {
            if (!ec && !self->over_) self->finish(boot_clock::now());
        });
    }
    /// Decided, but for a moment an answer is worth more than what it saves.
    bool awaits(boot_clock::time_point now) {
        const auto& nodes = deployment_->set->nodes;
        const bool any = std::any_of(nodes.begin(), nodes.end(), [&](const auto& node) {
            const bool waits = round_->unhurried() || !node->slow(now);
            return open_[node->index] > 0 && waits && !node->down();
        });
        if (any && !std::exchange(decided_, true))
            finish_at(std::min(now + (round_->unhurried() ? long_grace : grace), round_->deadline));
        return any;
    }
    void ask(std::size_t node) {
        ++open_[node];
        NodeConnection::Request r{round_->request()};
        r.done = [self = shared_from_this(), node, number = round_->asked(node)](
                     const Reply* reply, const error_code& why, bool sent) {
            --self->open_[node];
            if (reply != nullptr)
                self->round_->answered(node, number, *reply, boot_clock::now());
            else
                self->round_->missing(node, number, why, sent);
            if (!self->busy_ && !self->over_) self->advance();
        };
        if (round_->ages())
            r.wanted = [round = round_, node] { return round->useful(node, boot_clock::now()); };
        deployment_->connections[node]->ask(std::move(r), deployment_->patient());
    }
    void finish(boot_clock::time_point now) {
        over_ = true;
        BOOST_SCOPE_EXIT_ALL(this) {
            std::exchange(done_, {})();
        };
        if (decided_)
            for (const auto& node : deployment_->set->nodes)
                if (open_[node->index] > 0) node->set_slow(now);
        hook.unlink();
        timer_.cancel();
        round_->finish(now);
    }

    const std::shared_ptr<Deployment> deployment_;
    const std::shared_ptr<Round> round_;
    std::function<void()> done_;
    asio::steady_timer timer_;
    boost::container::small_vector<unsigned, 7> open_;  ///< requests of each node without an answer
    bool busy_ = false, decided_ = false;
    bool over_ = true;  ///< or not begun
};

}  // namespace

VerbRounds::VerbRounds(std::shared_ptr<Deployment> f, std::size_t most)
    : deployment_(std::move(f)), under_way_(std::make_shared<Countdown>(deployment_->executor)) {
    all_.reserve(most);
}

void VerbRounds::begin(std::shared_ptr<Round> r) {
    const auto drive = std::make_shared<Drive>(deployment_, std::move(r),
                                               [under_way = under_way_] { under_way->end(); });
    all_.push_back(drive);
    under_way_->begin();
    drive->start();
}

void VerbRounds::stop() noexcept {
    const auto now = boot_clock::now();
    for (const auto& round : all_)
        try {
            round->stop(now);
        } catch (const std::exception&) {
            // It is over all the same.
        }
}

void Deployment::owe(std::size_t node, const Ask& release, boot_clock::time_point again,
                     milliseconds ttl) {
    // The key cannot outlive a request that came at the last moment.
    const auto until = std::max(boot_clock::now(), again) + ttl + milliseconds(500);
    connections[node]->owe(release, again, until);
}

void Deployment::acquire_late(std::size_t node, const Ask& enter,
                              const std::shared_ptr<void>& place) {
    OwnerState* const p = find_state(place);
    if (p->leaving) return OwnerState::arrived(p->repairs, node);
    NodeConnection::Request r{enter};
    r.wanted = [place] { return !find_state(place)->leaving; };
    r.done = [place, node](const Reply* reply, const error_code&, bool sent) {
        if (reply != nullptr || !sent) OwnerState::arrived(find_state(place)->repairs, node);
        // The next one will ask so.
        if (reply != nullptr && vote_from(*reply, false).kind == Vote::Kind::units)
            find_state(place)->units = true;
    };
    connections[node]->ask(std::move(r), false);
}

void Deployment::stop() {
    const auto now = boot_clock::now();
    while (!running.empty())
        running.front().stop(now);
    const std::lock_guard hold(mutex);
    for (const LaneRequest* a : lane_requests)
        for (std::size_t i = 0; a->open && i < connections.size(); ++i) {
            Keys keys;
            keys.assign({}, a->key);
            owe(i, undo_ask(keys, a->value, set->options.fencing, a->shared), a->deadline, a->ttl);
        }
}

CorkScope::CorkScope(const Deployment& f) : deployment_(f) {
    for (const auto& line : deployment_.connections)
        line->gather();
}

CorkScope::~CorkScope() {
    for (const auto& line : deployment_.connections)
        line->send();
}

}  // namespace holdfast::redlock
