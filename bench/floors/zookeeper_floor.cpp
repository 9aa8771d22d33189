#include "floors/zookeeper_floor.hpp"

#include "bench.hpp"

namespace holdfast::bench {

namespace {

constexpr const char* parent = "/bench-floor";
// As long as the names that Holdfast makes.
constexpr const char* node = "/bench-floor/_c_00000000-0000-4000-8000-000000000000-lock-";

}  // namespace

ZooKeeperFloor::ZooKeeperFloor(const std::string& servers)
    : session_(servers, milliseconds(10000)) {
    const auto made = session_.create(parent, ZooKeeperSession::Kind::persistent);
    if (!made.ok() && !made.exists_already())
        throw SelfCheck("bare ZooKeeper client: " + std::to_string(made.code));
    cycle();
}

void ZooKeeperFloor::cycle() {
    const auto made = session_.create(node, ZooKeeperSession::Kind::sequential);
    const auto all = session_.children(parent);
    const auto gone = session_.remove(made.path);
    if (!made.ok() || !all.ok() || all.names.size() != 1 || !gone.ok())
        throw SelfCheck("bare ZooKeeper client: a cycle was not answered well");
}

}  // namespace holdfast::bench
