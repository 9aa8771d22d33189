#include "floors/zookeeper_floor.hpp"

#include "bench.hpp"

namespace holdfast::bench {

namespace {

constexpr const char* parent = "/bench-floor";
// As long as the names that Holdfast makes.
constexpr const char* node = "/bench-floor/_c_00000000-0000-4000-8000-000000000000-lock-";

}  // namespace

ZooKeeperFloor::ZooKeeperFloor(const std::string& servers) : servers_(servers) {
    cycle();
}

void ZooKeeperFloor::connect() {
    session_ = std::make_unique<ZooKeeperSession>(servers_, milliseconds(10000));
    const auto made = session_->create(parent, ZooKeeperSession::Kind::persistent);
    if (!made.ok() && !made.exists_already())
        throw SelfCheck("bare ZooKeeper client: " + std::to_string(made.code));
}

void ZooKeeperFloor::cycle() {
    if (Clock::now() - last_ > std::chrono::seconds(1)) connect();
    const auto made = session_->create(node, ZooKeeperSession::Kind::sequential);
    if (!made.ok()) throw SelfCheck("bare ZooKeeper client: no node was made");
    const auto all = session_->children(parent);
    const auto gone = session_->remove(made.path);
    if (!all.ok() || all.names.size() != 1 || !gone.ok())
        throw SelfCheck("bare ZooKeeper client: a cycle was not answered well");
    last_ = Clock::now();
}

}  // namespace holdfast::bench
