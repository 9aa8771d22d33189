// Another library's program, driven block by block over its standard input and output.
#pragma once
#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "measure/peer_rows.hpp"

namespace holdfast::bench {

struct PeerStart {
    std::vector<std::string> argv;  ///< the program, looked for in $PATH, and its arguments
    std::string package;            ///< what brings the program
    std::filesystem::path log;      ///< for its standard error
};

/// Runs on the processors of its parent. Asked to end by the end of its input, which it also
/// sees when this process dies; killed when it does not. One thread at a time.
class PeerProcess {
public:
    /// Starts it and does not wait. Errors: PeerError when it cannot be started.
    explicit PeerProcess(PeerStart);
    ~PeerProcess();
    PeerProcess(const PeerProcess&) = delete;
    PeerProcess& operator=(const PeerProcess&) = delete;

    /// Ready, or missing; waits at most so long. Errors, here and below: PeerError when the peer
    /// failed, ended, or said nothing in time, with what it wrote to its log at last.
    PeerSaid hello(double seconds = 30);
    /// Cycles for so long; the microseconds of each.
    std::vector<double> block(double seconds, double patience = 30);
    /// Takes the lock and keeps it, until free().
    void hold(double patience = 30);
    void free(double patience = 30);

private:
    PeerSaid ask(const std::string& words, PeerSaid::Kind, double seconds);
    std::string line(double seconds);
    [[noreturn]] void fail(const std::string& why) const;

    PeerStart start_;
    pid_t pid_ = -1;
    int socket_ = -1;
    std::string buffer_;
};

}  // namespace holdfast::bench
