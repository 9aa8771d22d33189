// The blocking path: one operation at a time, on its own connection.
#pragma once
#include "../resp/lane_link.hpp"
#include "protocol/in_flight.hpp"
#include "protocol/operations.hpp"

namespace holdfast::redis {

class Lane final : public spi::Lane {
public:
    Lane(std::shared_ptr<Shared>, std::shared_ptr<InFlight>, std::shared_ptr<tls::Context>);

    void attempt(spi::Attempt&) noexcept override;
    void release(spi::Held&) noexcept override;

private:
    const Keys& keys(std::string_view name);
    /// Runs it to its end. `now`: the present, approximately.
    void drive(Operation&, boot_clock::time_point now);
    /// Sentinels: as RedisBackend::count, without asking them.
    void count(Operation& granted);

    const std::shared_ptr<Shared> shared_;
    const std::shared_ptr<InFlight> in_flight_;
    LaneLink link_;
    Command command_;
    std::string name_;  // the name of keys_: usually it comes again
    Keys keys_;
};

}  // namespace holdfast::redis
