#include "variants/zookeeper_herd.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "bench.hpp"

namespace holdfast::bench {

namespace {

using Kind = ZooKeeperSession::Kind;
using Watch = ZooKeeperSession::Watch;
using Answer = ZooKeeperSession::Answer;

constexpr milliseconds session_timeout{2000}, cap{10000};
constexpr const char* node = "/bench-herd";
constexpr const char* parent = "/bench-herds";

std::unique_ptr<ZooKeeperSession> connect(const std::string& servers) {
    return std::make_unique<ZooKeeperSession>(servers, session_timeout);
}

void must(const Answer& answer, const char* what) {
    if (!answer.ok()) throw SelfCheck(std::string("ZooKeeper herd: ") + what);
}

}  // namespace

NodeHerd::NodeHerd(const std::string& servers, std::size_t waiters) {
    for (std::size_t i = 0; i <= waiters; ++i) {
        One& one = all_.emplace_back();
        one.session = connect(servers);
        one.session->on_event = [this, &one](const std::string&) {
            ++now_.notifications;
            try_it(one);
        };
        sessions_.push_back(one.session.get());
        ZooKeeperSession::turn(sessions_, milliseconds(0));  // the others' heartbeats
    }
    for (One& one : all_)
        try_it(one);
}

void NodeHerd::try_it(One& one) {
    one.session->create(node, Kind::ephemeral, [this, &one](const Answer& answer) {
        if (answer.exists_already()) return watch(one);
        must(answer, "create");
        turns_.granted(&one, now_);
        release(one);
    });
}

void NodeHerd::watch(One& one) {
    one.session->get(node, Watch::yes, [this, &one](const Answer& answer) {
        if (answer.no_node()) return try_it(one);
        must(answer, "watch");
    });
}

void NodeHerd::release(One& one) {
    turns_.let_go();
    one.session->remove(node, [this, &one](const Answer& answer) {
        must(answer, "delete");
        try_it(one);
    });
}

BroadcastResult NodeHerd::run_for(double seconds) {
    now_ = {};
    const auto before = ZooKeeperSession::requests(sessions_);
    const auto start = Clock::now();
    while (seconds_since(start) < seconds)
        ZooKeeperSession::turn(sessions_, milliseconds(20));
    now_.seconds = seconds_since(start);
    now_.requests = ZooKeeperSession::requests(sessions_) - before;
    return std::exchange(now_, {});
}

HerdBurst::HerdBurst(const std::string& servers, const std::string& name, std::size_t survivors)
    : node_(name) {
    for (std::size_t i = 0; i <= survivors; ++i) {
        ZooKeeperSession& session = *all_.emplace_back(connect(servers));
        sessions_.push_back(&session);
        if (i == 0) {
            must(session.create(node_, Kind::ephemeral), "hold");
            continue;
        }
        session.on_event = [this, &session](const std::string&) { try_it(session); };
        watch(session);
        turn();
    }
    turn_until(
        sessions_, [&] { return watching_ == survivors; }, cap, "the survivors' watches");
}

void HerdBurst::turn() {
    ZooKeeperSession::turn(sessions_, milliseconds(0));
}

void HerdBurst::watch(ZooKeeperSession& session) {
    session.get(node_, Watch::yes, [this, &session](const Answer& answer) {
        if (answer.no_node()) return try_it(session);
        must(answer, "watch");
        ++watching_;
    });
}

void HerdBurst::try_it(ZooKeeperSession& session) {
    session.create(node_, Kind::ephemeral, [this, &session](const Answer& answer) {
        if (answer.exists_already()) return watch(session);
        must(answer, "create");
        now_.served_ms.push_back(millis_since(start_));
        session.on_event = {};
        session.remove(node_, [this](const Answer& gone) {
            must(gone, "delete");
            ++released_;
        });
    });
}

HerdBurst::Result HerdBurst::play(Clock::time_point start) {
    start_ = start;
    const auto survivors = std::span(sessions_).subspan(1);
    const auto before = ZooKeeperSession::requests(survivors);
    all_.front()->remove(node_, [](const Answer& answer) { must(answer, "release"); });
    turn_until(
        sessions_, [&] { return released_ == all_.size() - 1; }, cap, "everybody's turn");
    now_.requests = ZooKeeperSession::requests(survivors) - before;
    return now_;
}

void watch_until_killed(const std::string& servers, const std::string& name,
                        const std::function<void()>& watching) {
    const auto session = connect(servers);
    must(session->get(name, Watch::yes), "watch");
    watching();
    for (;;)
        session->turn(milliseconds(100));
}

ParentHerdResult parent_herd(const std::string& servers, std::size_t waiters, std::size_t others) {
    const auto holder = connect(servers);
    const auto other = [](std::size_t i) { return fmt::format("{}/other-{}", parent, i); };
    holder->create(parent, Kind::persistent);
    must(holder->create(fmt::format("{}/mine", parent), Kind::ephemeral), "hold");
    for (std::size_t i = 0; i < others; ++i)
        must(holder->create(other(i), Kind::ephemeral), "hold another");

    std::vector<std::unique_ptr<ZooKeeperSession>> herd;
    std::vector<ZooKeeperSession*> sessions{holder.get()};
    ParentHerdResult result;
    std::size_t looked = 0;
    // A look: is mine still there? It is; so watch again.
    const auto look = [&](ZooKeeperSession& session) {
        session.children(parent, Watch::yes, [&](const Answer& answer) {
            must(answer, "list");
            if (std::find(answer.names.begin(), answer.names.end(), "mine") == answer.names.end())
                throw SelfCheck("ZooKeeper herd: the lock that is waited for went away");
            ++looked;
        });
    };
    for (std::size_t i = 0; i < waiters; ++i) {
        ZooKeeperSession& session = *herd.emplace_back(connect(servers));
        session.on_event = [&](const std::string&) {
            ++result.notifications;
            look(session);
        };
        sessions.push_back(&session);
        look(session);
        ZooKeeperSession::turn(sessions, milliseconds(0));
    }
    turn_until(
        sessions, [&] { return looked == waiters; }, cap, "the waiters' first look");
    const auto all_waiters = std::span(sessions).subspan(1);
    const auto before = ZooKeeperSession::requests(all_waiters);
    for (std::size_t i = 0; i < others; ++i) {
        looked = 0;
        bool released = false;
        holder->remove(other(i), [&](const Answer& answer) {
            must(answer, "release another");
            released = true;
        });
        // A waiter that is not notified within a second is not notified at all.
        const auto end = Clock::now() + std::chrono::seconds(1);
        turn_until(
            sessions, [&] { return released && (looked == waiters || Clock::now() > end); }, cap,
            "the release of another lock");
    }
    result.releases = others;
    result.requests = ZooKeeperSession::requests(all_waiters) - before;
    return result;
}

}  // namespace holdfast::bench
