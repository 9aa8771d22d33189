#include "floors/zookeeper_floor.hpp"

#include "bench.hpp"

namespace holdfast::bench {

namespace {

using Kind = ZooKeeperSession::Kind;
using Watch = ZooKeeperSession::Watch;

constexpr const char* root = "/bench-floor";
// As long as the names that Holdfast makes.
constexpr const char* node = "/_c_00000000-0000-4000-8000-000000000000-lock-";
constexpr milliseconds cap{10000};

std::string parent(std::size_t name) {
    return std::string(root) + "/" + std::to_string(name);
}

}  // namespace

ZooKeeperFloor::ZooKeeperFloor(const std::string& servers, std::size_t names)
    : servers_(servers), names_(names) {
    connect();
    make_parents();
    run(names_, {});
}

void ZooKeeperFloor::connect() {
    session_ = std::make_unique<ZooKeeperSession>(servers_, cap);
    last_ = Clock::now();
}

void ZooKeeperFloor::make_parents() {
    std::size_t made = 0;
    bool refused = false;
    const auto take = [&](const ZooKeeperAnswer& answer) {
        refused = refused || (!answer.ok() && !answer.exists_already());
        ++made;
    };
    session_->create(root, Kind::persistent, take);
    for (std::size_t i = 0; i < names_; ++i)
        session_->create(parent(i), Kind::persistent, take);
    turn_until(
        {session_.get()}, [&] { return made == names_ + 1; }, cap, "the floor's parents");
    if (refused) throw SelfCheck("bare ZooKeeper client: no parent was made");
}

void ZooKeeperFloor::start(std::size_t name) {
    ++under_way_;
    session_->create(
        parent(name) + node, Kind::sequential, [this, name](const ZooKeeperAnswer& made) {
            if (!made.ok()) return ended(made, false, name);
            session_->children(parent(name), Watch::no,
                               [this, name, path = made.path](const ZooKeeperAnswer& all) {
                                   const bool alone = all.ok() && all.names.size() == 1;
                                   session_->remove(
                                       path, [this, name, alone](const ZooKeeperAnswer& gone) {
                                           ended(gone, alone, name);
                                       });
                               });
        });
}

void ZooKeeperFloor::ended(const ZooKeeperAnswer& answer, bool well, std::size_t name) {
    --under_way_;
    ++done_;
    failed_ = failed_ || !well || !answer.ok();
    if (!failed_ && Clock::now() < until_) start(name);
}

std::size_t ZooKeeperFloor::run(std::size_t names, Clock::time_point until) {
    done_ = 0;
    until_ = until;
    for (std::size_t i = 0; i < names; ++i)
        start(i);
    while (under_way_ > 0 && Clock::now() < until)
        session_->turn(milliseconds(20));
    turn_until(
        {session_.get()}, [&] { return under_way_ == 0; }, cap, "the end of the floor's cycles");
    if (failed_) throw SelfCheck("bare ZooKeeper client: a cycle was not answered well");
    last_ = Clock::now();
    return done_;
}

void ZooKeeperFloor::cycle() {
    if (Clock::now() - last_ > std::chrono::seconds(1)) connect();
    run(1, {});
}

std::size_t ZooKeeperFloor::run_for(double seconds) {
    return run(names_, Clock::now() + in_seconds(seconds));
}

}  // namespace holdfast::bench
