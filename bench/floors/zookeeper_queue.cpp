#include "floors/zookeeper_queue.hpp"

#include <utility>

#include "bench.hpp"

namespace holdfast::bench {

namespace {

using Kind = ZooKeeperSession::Kind;
using Watch = ZooKeeperSession::Watch;

constexpr milliseconds session_timeout{10000};
constexpr const char* parent = "/bench-queue";
// As long as the names that Holdfast makes; all alike, so that their order is that of the text.
constexpr const char* node = "/_c_00000000-0000-4000-8000-000000000000-lock-";

}  // namespace

ZooKeeperQueue::ZooKeeperQueue(const std::string& servers, std::size_t waiters,
                               std::size_t sessions) {
    for (std::size_t i = 0; i < sessions; ++i) {
        owned_.push_back(std::make_unique<ZooKeeperSession>(servers, session_timeout));
        owned_.back()->on_event = [this](const std::string& path) {
            const auto who = behind_.find(path);
            if (who == behind_.end()) return;
            One& one = *who->second;
            behind_.erase(who);
            look(one);
        };
        sessions_.push_back(owned_.back().get());
    }
    const auto made = sessions_.front()->create(parent, Kind::persistent);
    if (!made.ok() && !made.exists_already()) throw SelfCheck("ZooKeeper queue: no parent");
    for (std::size_t i = 0; i <= waiters; ++i) {
        One& one = all_.emplace_back();
        one.session = sessions_[i % sessions];
        stand(one);
    }
}

/// Thrown later: the caller is the C library.
bool ZooKeeperQueue::went_well(const ZooKeeperAnswer& answer, const char* what) {
    if (!answer.ok()) failure_ = std::string("ZooKeeper queue: ") + what;
    return answer.ok();
}

void ZooKeeperQueue::stand(One& one) {
    one.session->create(std::string(parent) + node, Kind::sequential,
                        [this, &one](const ZooKeeperAnswer& made) {
                            if (!went_well(made, "create")) return;
                            one.node = made.path;
                            look(one);
                        });
}

void ZooKeeperQueue::look(One& one) {
    one.session->children(parent, Watch::no, [this, &one](const ZooKeeperAnswer& line) {
        if (!went_well(line, "list")) return;
        const std::string prefix = std::string(parent) + "/";
        std::string before;
        for (const auto& name : line.names)
            if (prefix + name < one.node && name > before) before = name;
        if (before.empty())
            granted(one);
        else
            watch(one, prefix + before);
    });
}

void ZooKeeperQueue::watch(One& one, const std::string& before) {
    behind_[before] = &one;
    one.session->get(before, Watch::yes, [this, &one, before](const ZooKeeperAnswer& answer) {
        if (!answer.no_node()) {
            went_well(answer, "watch");
            return;
        }
        behind_.erase(before);
        look(one);
    });
}

void ZooKeeperQueue::granted(One& one) {
    turns_.granted(&one, now_);
    turns_.let_go();
    one.session->remove(one.node, [this, &one](const ZooKeeperAnswer& gone) {
        if (went_well(gone, "delete")) stand(one);
    });
}

HandOffs ZooKeeperQueue::run_for(double seconds) {
    now_ = {};
    turns_.forget();
    const auto before = ZooKeeperSession::requests(sessions_);
    const auto start = Clock::now();
    while (seconds_since(start) < seconds && failure_.empty())
        ZooKeeperSession::turn(sessions_, milliseconds(20));
    if (!failure_.empty()) throw SelfCheck(failure_);
    now_.seconds = seconds_since(start);
    now_.requests = ZooKeeperSession::requests(sessions_) - before;
    return std::exchange(now_, {});
}

}  // namespace holdfast::bench
