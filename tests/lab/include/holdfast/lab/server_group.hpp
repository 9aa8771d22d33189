// Real servers of one kind that agree among themselves, or one alone, each a process in a directory
// of its own: what a test asks of any kind of them.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "holdfast/lab/data.hpp"
#include "holdfast/lab/process.hpp"
#include "holdfast/lab/wait_until.hpp"

namespace holdfast::lab {

/// Running servers. They end with their object, and also when this process dies in any way. They
/// are counted from 0.
///
/// Thread safety: addresses and leader() from any thread; the members that change processes from
/// one thread at a time.
class ServerGroup {
public:
    class Impl;

    [[nodiscard]] std::size_t size() const noexcept;
    /// `SCHEME://127.0.0.1:PORT,127.0.0.1:PORT`
    [[nodiscard]] std::string url() const;
    /// The one server alone.
    [[nodiscard]] std::string url(std::size_t server) const;
    [[nodiscard]] std::string host(std::size_t server = 0) const;
    /// The port for clients; it stays over restarts.
    [[nodiscard]] std::uint16_t port(std::size_t server = 0) const;
    [[nodiscard]] std::filesystem::path data_directory(std::size_t server = 0) const;
    [[nodiscard]] Process& process(std::size_t server = 0);

    [[nodiscard]] bool alive(std::size_t server = 0);
    void pause(std::size_t server = 0);   ///< SIGSTOP; returns when the kernel shows it
    void resume(std::size_t server = 0);  ///< SIGCONT; returns when the kernel shows it
    void kill(std::size_t server = 0);    ///< SIGKILL; returns when it is gone

    /// Ends the server, if it runs, and starts it again; does not wait until it serves. `fresh`
    /// takes its data away, or those of all where the others do not bear one that has forgotten
    /// what it confirmed: then all are started. Errors: as at their start.
    void restart(std::size_t server = 0, Data data = Data::keep);
    /// All of them, and waits until they serve. `fresh` makes others at the same addresses.
    void restart_all(Data data = Data::keep);

    /// The one that leads now (the only one where it stands alone), if any says so; of several, the
    /// one that was elected last.
    [[nodiscard]] std::optional<std::size_t> leader() const;
    /// Kills the leader and returns which it was. Errors: LabError when there is none.
    std::size_t kill_leader();

    /// Returns when every server that is alive serves, which takes one that leads. Errors: LabError
    /// when `cap` has passed, with the command and the end of a log.
    void wait_ready(std::chrono::nanoseconds cap = std::chrono::seconds(60));

protected:
    explicit ServerGroup(std::unique_ptr<Impl>) noexcept;
    ServerGroup(ServerGroup&&) noexcept;
    ServerGroup& operator=(ServerGroup&&) noexcept;
    ~ServerGroup();

    /// "127.0.0.1:PORT,127.0.0.1:PORT"
    [[nodiscard]] std::string addresses() const;

    std::unique_ptr<Impl> impl_;
};

}  // namespace holdfast::lab
