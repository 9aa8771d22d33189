// PostgreSQL servers that Patroni, Debian's package, runs: it keeps who leads in an etcd, and
// promotes another when the leader dies or is asked to hand over.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "holdfast/lab/etcd_server.hpp"
#include "holdfast/lab/free_port.hpp"
#include "holdfast/lab/process.hpp"
#include "holdfast/lab/sql_rows.hpp"
#include "holdfast/lab/temp_dir.hpp"

namespace holdfast::lab {

/// What one member's configuration has to name.
struct PatroniMember {
    std::string name;
    std::filesystem::path directory;  ///< its own; `data` in it is for the server
    std::filesystem::path programs;   ///< where PostgreSQL's are
    std::uint16_t port = 0;           ///< of the server
    std::uint16_t rest_port = 0;      ///< of Patroni
    std::string etcd;                 ///< "127.0.0.1:PORT"
};

/// Running members, each a Patroni with its server, and the etcd. They end with this object, and
/// also when this process dies. Members are counted from 0.
///
/// Thread safety: port() and rest_port() from any thread; all else from one thread at a time.
class PatroniServers {
public:
    /// `config` makes a member's configuration file (YAML). Returns when one leads and each of the
    /// others follows it. Errors: LabError when a package is missing, or with the end of a log.
    /// Blocking: some ten seconds.
    PatroniServers(std::size_t count,
                   const std::function<std::string(const PatroniMember&)>& config);
    ~PatroniServers();

    [[nodiscard]] std::size_t size() const noexcept { return members_.size(); }
    [[nodiscard]] std::uint16_t port(std::size_t i) const { return members_.at(i).port.number(); }
    [[nodiscard]] std::uint16_t rest_port(std::size_t i) const {
        return members_.at(i).rest.number();
    }
    /// The one whose Patroni says that it leads, if there is one.
    [[nodiscard]] std::optional<std::size_t> primary() const;
    /// Runs SQL at that one, in database `postgres`; `login` is libpq's "user=... password=...".
    /// Errors: LabError with the server's words.
    SqlRows sql(const std::string& login, const std::string& text) const;

    /// `patronictl switchover` to a synchronous standby. Returns when another one leads; the
    /// command and the former leader then take some seconds more: wait_settled(). Errors: LabError.
    void switch_over();
    /// Returns when one leads, each other one follows it, and one of these is synchronous.
    void wait_settled() const;

private:
    struct Member {
        TempDir directory;
        Port port = free_port(), rest = free_port();
        std::optional<Process> process;
    };
    /// What its Patroni says to `GET /path`: whether that is what the member is.
    bool is(const Member&, const char* path) const;
    std::string logs() const;

    EtcdServers etcd_ = EtcdServers::start();
    std::deque<Member> members_;
    TempDir directory_;
    std::optional<Process> switching_;
};

}  // namespace holdfast::lab
