// The raw floor for etcd: the requests of Holdfast's backend by a bare gRPC client on one
// connection: no thread, no queue, no option.
#pragma once
#include <cstdint>
#include <holdfast/lab/grpc_client.hpp>
#include <memory>
#include <string>
#include <vector>

#include "measure/latency.hpp"

namespace holdfast::bench {

/// Up to 32 names share a request, as those of Holdfast's concurrent callers do.
/// All keys that are written within half a second are attached to one lease of the server's.
class EtcdFloor {
public:
    /// What it is called among the others.
    static constexpr const char* variant = "floor: same requests";

    /// Connects; then takes and frees every name once, and asks the server each time whose keys are
    /// there. Errors: SelfCheck.
    explicit EtcdFloor(std::uint16_t port, std::size_t names = 1);
    ~EtcdFloor();
    EtcdFloor(const EtcdFloor&) = delete;
    EtcdFloor& operator=(const EtcdFloor&) = delete;

    /// Takes and frees the names of the first request. Errors: SelfCheck unless each is answered
    /// well.
    void cycle();
    /// The same with all names, each again and again for so long; returns how often. Errors:
    /// SelfCheck.
    std::size_t run_for(double seconds);

    /// The name of a lock of Holdfast's whose keys stand in the same place.
    static std::string lock_name(std::size_t i);
    /// Whose key was last the first name's.
    const std::string& owner() const;

private:
    struct Share;
    std::string next_owner();
    bool young() const;
    void go_on(Share&);
    std::size_t answered(Share&);
    void ask_for_lease(Share&);
    void ask_to_take(Share&);
    void ask_to_free(Share&);
    void prove(const char* step, std::size_t keys);

    lab::GrpcConnection connection_;
    std::vector<std::unique_ptr<Share>> shares_;
    std::string owner_suffix_;
    std::int64_t lease_ = 0;
    Clock::time_point leased_{};
    std::uint64_t counter_ = 0;
};

}  // namespace holdfast::bench
