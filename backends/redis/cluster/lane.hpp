// The blocking path in a cluster: a lane of each server that it has used.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "members.hpp"

namespace holdfast::redis {

class ClusterLane final : public spi::Lane {
public:
    ClusterLane(std::shared_ptr<Members>, std::string prefix);

    /// A name whose server is not known, or that is sent elsewhere, is left to the engine.
    void attempt(spi::Attempt&) noexcept override;
    void release(spi::Held&) noexcept override;

private:
    struct Of {
        Node* node;
        unsigned moves;  ///< of its server, when the lane was made
        std::unique_ptr<spi::Lane> lane;
    };
    /// Null: the slot has no known server.
    spi::Lane* of(std::string_view name);

    const std::shared_ptr<Members> members_;
    const std::string prefix_;
    std::string key_;  // keeps its memory
    std::vector<Of> lanes_;
};

}  // namespace holdfast::redis
