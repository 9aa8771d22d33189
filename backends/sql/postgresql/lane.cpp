#include "../common/lane.hpp"

#include "backend.hpp"

namespace holdfast::postgresql {
namespace {

class Lane final : public sql::Lane<Step, Connection> {
public:
    explicit Lane(const std::shared_ptr<Shared>& shared)
        : sql::Lane<Step, Connection>(shared->options.prefix, shared, Connection::Resolve::no) {}

private:
    void answered(Step& s, spi::Attempt& a) override { sql::take(s, connection_.shared(), a); }
    void released(const Step& s, spi::Held& h) override {
        Waiters& waiters = *connection_.shared().waiters;
        h.handed_on = s.handed_on;
        if (s.handed_on)
            waiters.handed_on_elsewhere(s.key);
        else if (s.freed)
            waiters.freed_elsewhere(s.key);
    }
    void sweep(boot_clock::time_point deadline) override {
        postgresql::sweep(connection_, deadline, cursor_);
    }

    std::string cursor_;
};

}  // namespace

std::unique_ptr<spi::Lane> Backend::open_lane() {
    return std::make_unique<Lane>(shared_);
}

}  // namespace holdfast::postgresql
