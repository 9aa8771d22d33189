// The store that the locks protect: a number, a stock, and writes that carry fencing tokens. It
// lives in the bench's process, workers reach it by a Unix socket, and each request by itself is
// atomic: what goes wrong between two of them is the lack of a lock, not the store.
#pragma once
#include <cstdint>
#include <filesystem>
#include <holdfast/fenced_resource.hpp>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "checker/recorder.hpp"
#include "measure/latency.hpp"

namespace holdfast::bench {

/// What a worker told the store, in order of arrival.
struct StoreEvent {
    enum class Kind : std::uint8_t {
        holds,  ///< says that it was granted the lock
        write,  ///< wrote with its token
        lost,   ///< was told that its lease is lost
        sold    ///< one item
    } kind{};
    double at_ms = 0;
    std::string who;
    std::uint64_t token = 0;
    bool valid = true;           ///< write: what the lease said of itself just before
    bool stale = false;          ///< write: somebody else had said `holds` since
    bool fence_accepted = true;  ///< write, holds: by the second store, which checks the token
};

/// Requests, a line each: "wait" (answered when all parties wait), "stay" (never answered), "get",
/// "set N [ID]", "read CELL", "put CELL N [ID]", "add CELL [ID]" (one more), "sold WHO",
/// "holds WHO TOKEN ID", "write WHO TOKEN VALID [ID]", "lost WHO"; ID is that of the writer's
/// acquisition, for the history. Thread-safe.
class Store {
public:
    explicit Store(const std::filesystem::path& socket);
    ~Store();
    Store(const Store&) = delete;
    Store& operator=(const Store&) = delete;

    /// Starts anew: the number, no events, and how many "wait" requests open the gate.
    void reset(long long number, std::size_t parties);
    /// Puts what "set" and "write" do into a history from now on, as writes under the lock of that
    /// name; those of "write" for both stores.
    void record(const std::filesystem::path& file, const std::string& name);
    long long number() const;
    /// What the cell of that name holds; nobody wrote it: 0.
    long long cell(const std::string& name) const;
    void put(const std::string& name, long long value);
    /// The sum of all cells whose names begin so.
    long long sum(const std::string& prefix) const;
    std::vector<StoreEvent> events() const;
    /// Milliseconds since reset, on the events' clock.
    double now_ms() const;
    std::string address() const { return path_; }

private:
    struct Peer {
        std::string in;
    };
    void serve();
    bool read_from(int fd);
    void answer(int fd, const std::string& line);
    void open_gate();
    StoreEvent& add(StoreEvent::Kind, std::string who);
    /// A write, or a holder's first access, at the store that checks tokens.
    void see_token(StoreEvent&, std::uint64_t writer);

    std::string path_;
    int listener_ = -1, wake_[2] = {-1, -1};
    std::map<int, Peer> peers_;
    mutable std::mutex mutex_;
    long long number_ = 0;
    std::map<std::string, long long> cells_;
    std::size_t parties_ = 0;
    std::vector<int> at_gate_;
    std::vector<StoreEvent> events_;
    std::string holder_;
    FencedResource fence_;
    std::optional<history::Recorder> recorder_;
    std::uint16_t name_ = 0;
    Clock::time_point start_ = Clock::now();
    std::thread thread_;
};

/// A worker's end of it. Errors: std::runtime_error when the store is gone.
class StoreClient {
public:
    explicit StoreClient(const std::string& address);
    ~StoreClient();
    StoreClient(const StoreClient&) = delete;
    StoreClient& operator=(const StoreClient&) = delete;
    /// Sends one line, returns the answer.
    std::string ask(const std::string& line);

private:
    int fd_ = -1;
    std::string in_;
};

}  // namespace holdfast::bench
