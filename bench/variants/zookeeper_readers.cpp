#include "variants/zookeeper_readers.hpp"

#include <algorithm>
#include <utility>

#include "measure/crowd.hpp"

namespace holdfast::bench {

namespace {

using NodeKind = ZooKeeperSession::Kind;
using Watch = ZooKeeperSession::Watch;

constexpr milliseconds session_timeout{10000};

/// What the server adds to a sequential node: its place in the line.
std::string place_of(const std::string& node) {
    return node.substr(node.size() - std::min<std::size_t>(node.size(), 10));
}

}  // namespace

ZooKeeperReaders::ZooKeeperReaders(const std::string& servers, const std::string& parent,
                                   std::size_t callers, std::size_t readers, Watches watches,
                                   milliseconds inside)
    : parent_(parent), watches_(watches), inside_(inside) {
    for (std::size_t i = 0; i < callers; ++i) {
        One& one = all_.emplace_back();
        one.session = std::make_unique<ZooKeeperSession>(servers, session_timeout);
        one.reads = is_reader(i, callers, readers);
        one.session->on_event = [this, &one](const std::string&) {
            ++now_.notifications;
            if (one.waits) look(one);
        };
        sessions_.push_back(one.session.get());
    }
    const auto made = sessions_.front()->create(parent_, NodeKind::persistent);
    if (!made.ok() && !made.exists_already()) throw SelfCheck("ZooKeeper readers: no parent");
    for (One& one : all_)
        stand(one);
}

/// Thrown later: the caller is the C library.
bool ZooKeeperReaders::went_well(const ZooKeeperAnswer& answer, const char* what) {
    if (!answer.ok()) failure_ = std::string("ZooKeeper readers: ") + what;
    return answer.ok();
}

void ZooKeeperReaders::stand(One& one) {
    one.asked_at = Clock::now();
    one.waits = true;
    one.session->create(parent_ + (one.reads ? "/read-" : "/write-"), NodeKind::sequential,
                        [this, &one](const ZooKeeperAnswer& made) {
                            if (!went_well(made, "create")) return;
                            one.node = made.path;
                            look(one);
                        });
}

void ZooKeeperReaders::look(One& one) {
    const bool parent = one.reads && watches_ == Watches::parent;
    one.session->children(parent_, parent ? Watch::yes : Watch::no,
                          [this, &one, parent](const ZooKeeperAnswer& line) {
                              if (!went_well(line, "list")) return;
                              const std::string mine = place_of(one.node);
                              std::string before;
                              for (const auto& name : line.names) {
                                  if (one.reads && name.starts_with("read-")) continue;
                                  const std::string place = place_of(name);
                                  if (place < mine && (before.empty() || place > place_of(before)))
                                      before = name;
                              }
                              if (before.empty())
                                  granted(one);
                              else if (!parent)
                                  watch(one, parent_ + "/" + before);
                          });
}

void ZooKeeperReaders::watch(One& one, const std::string& before) {
    one.session->get(before, Watch::yes, [this, &one](const ZooKeeperAnswer& answer) {
        if (answer.no_node()) return look(one);
        went_well(answer, "watch");
    });
}

void ZooKeeperReaders::waited(const One& one) {
    if (!one.reads)
        now_.writers_longest_ms = std::max(now_.writers_longest_ms, millis_since(one.asked_at));
}

void ZooKeeperReaders::granted(One& one) {
    waited(one);
    one.waits = false;
    ++now_.grants;
    if (one.reads) ++now_.reads;
    if (one.reads ? writers_inside_ > 0 : !leaving_.empty()) ++now_.two_at_once;
    if (!one.reads) ++writers_inside_;
    one.leaves_at = Clock::now() + inside_;
    leaving_.push_back(&one);
}

void ZooKeeperReaders::leave(One& one) {
    if (!one.reads) --writers_inside_;
    one.session->remove(one.node, [this, &one](const ZooKeeperAnswer& gone) {
        if (went_well(gone, "delete")) stand(one);
    });
}

ReadersResult ZooKeeperReaders::run_for(double seconds) {
    now_ = {};
    const auto before = ZooKeeperSession::requests(sessions_);
    const auto start = Clock::now();
    while (seconds_since(start) < seconds && failure_.empty()) {
        ZooKeeperSession::turn(sessions_, leaving_.empty() ? milliseconds(20) : milliseconds(1));
        while (!leaving_.empty() && leaving_.front()->leaves_at <= Clock::now()) {
            One& one = *leaving_.front();
            leaving_.pop_front();
            leave(one);
        }
    }
    if (!failure_.empty()) throw SelfCheck(failure_);
    now_.seconds = seconds_since(start);
    now_.requests = ZooKeeperSession::requests(sessions_) - before;
    for (const One& one : all_)
        if (one.waits) waited(one);
    return std::exchange(now_, {});
}

}  // namespace holdfast::bench
