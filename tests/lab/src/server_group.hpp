// What each kind of servers that agree among themselves adds to processes in directories of their
// own.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/lab/free_port.hpp"
#include "holdfast/lab/process.hpp"
#include "holdfast/lab/server_group.hpp"
#include "holdfast/lab/temp_dir.hpp"

namespace holdfast::lab {

class ServerGroup::Impl {
public:
    struct Kind {
        const char *one, *package;
    };
    struct Member {
        TempDir directory;
        Port client = free_port(), peer = free_port(), third = free_port();
        std::optional<Process> process;
        bool served = false;  ///< since it was started
    };

    /// `options`: those of any kind of servers.
    template <class Options>
    Impl(const Kind& kind, const Options& options)
        : kind_(kind),
          count_(options.count),
          hosts_(options.hosts),
          launchers_(options.launchers),
          cpus_(options.cpus),
          cap_(options.cap) {
        make_members();
    }
    virtual ~Impl() = default;
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;

    const Kind& kind() const noexcept { return kind_; }
    std::size_t size() const noexcept { return members_.size(); }
    Member& at(std::size_t i) const;
    Process& process(std::size_t i) const;
    std::string host(std::size_t i) const;
    std::uint16_t port(std::size_t i) const { return at(i).client.number(); }
    /// "HOST:PORT"
    std::string address(std::size_t i) const;

    void wait_ready(std::chrono::nanoseconds cap);
    virtual void restart(std::size_t i, Data);
    void restart_all(Data);

    virtual const char* scheme() const noexcept = 0;
    virtual std::optional<std::size_t> leader() const = 0;

protected:
    /// Starts them for the first time, on other ports where somebody has taken one of theirs.
    void start();
    /// Ends all, and starts them again.
    void start_anew(Data);
    /// How often the data of all were taken away.
    unsigned generation() const noexcept { return generation_; }

    /// Writes its configuration, and returns how to run it.
    virtual std::vector<std::string> command(std::size_t i) = 0;
    virtual bool serves(std::size_t i) const = 0;
    /// Whether they serve as a group, when each does.
    virtual bool agree() const = 0;

private:
    void make_members();
    void end(std::size_t i);
    void launch(std::size_t i);

    const Kind kind_;
    const std::size_t count_;
    const std::vector<std::string> hosts_;
    const std::vector<std::vector<std::string>> launchers_;
    const std::vector<int> cpus_;
    const std::chrono::nanoseconds cap_;
    std::vector<std::unique_ptr<Member>> members_;
    unsigned generation_ = 0;
};

}  // namespace holdfast::lab
