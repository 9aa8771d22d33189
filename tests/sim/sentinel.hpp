// A Sentinel as clients see it: which server it takes for the primary, since which failover, and
// its message when that changes.
#pragma once
#include <string>

#include "redis.hpp"

namespace holdfast::sim {

class Sentinel final : public Redis {
public:
    /// `primary`: the name under which it watches that server.
    Sentinel(Kernel&, std::string name, std::string primary, std::string host);

    /// It has learnt of a failover, and tells those who listen.
    void learn(const std::string& host, std::uint64_t of_configuration);
    const std::string& named() const noexcept { return host_; }

private:
    std::string answer(Session&, const Words&) override;
    const std::string primary_;
    std::string host_;
    std::uint64_t epoch_ = 0;
};

}  // namespace holdfast::sim
