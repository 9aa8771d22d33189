// Readers and writers on bare ZooKeeper, as articles have them: one line of "read-" and "write-"
// nodes. A writer waits for the node before its own, a reader until no writer is before it: it
// watches the parent, which tells it of every change, or the last writer before it.
#pragma once
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "measure/latency.hpp"
#include "variants/zookeeper_session.hpp"

namespace holdfast::bench {

/// What happened in one stretch of time.
struct ReadersResult {
    double seconds = 0;
    std::size_t grants = 0, reads = 0;
    std::size_t two_at_once = 0;      ///< grants beside somebody who must be alone, or who must
    std::uint64_t requests = 0;       ///< of all sessions
    std::uint64_t notifications = 0;  ///< received by them
    double writers_longest_ms = 0;    ///< from asking to the grant, or to the end
};

/// Callers with a session each, as processes of their own would have, all on one thread.
class ZooKeeperReaders {
public:
    enum class Watches : std::uint8_t { parent, last_writer };  ///< what a reader watches

    /// So many of 100 callers read. `parent` is made. Errors: SelfCheck.
    ZooKeeperReaders(const std::string& servers, const std::string& parent, std::size_t callers,
                     std::size_t readers, Watches, milliseconds inside);
    /// Lets them go on for so long; nobody sends heartbeats before the next call. Errors:
    /// SelfCheck.
    ReadersResult run_for(double seconds);

private:
    struct One {
        std::unique_ptr<ZooKeeperSession> session;
        std::string node;
        bool reads = false, waits = false;
        Clock::time_point asked_at{}, leaves_at{};
    };
    void stand(One&);
    void look(One&);
    void watch(One&, const std::string& before);
    void granted(One&);
    void leave(One&);
    void waited(const One&);
    bool went_well(const ZooKeeperAnswer&, const char* what);

    std::string parent_;
    Watches watches_;
    milliseconds inside_;
    std::deque<One> all_;
    std::vector<ZooKeeperSession*> sessions_;
    std::deque<One*> leaving_;  ///< who is inside, the next to leave first
    std::size_t writers_inside_ = 0;
    ReadersResult now_;
    std::string failure_;
};

}  // namespace holdfast::bench
