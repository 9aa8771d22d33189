// What each kind of server of the lab adds to a process in a directory of its own.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/lab/free_port.hpp"
#include "holdfast/lab/process.hpp"
#include "holdfast/lab/single_server.hpp"
#include "holdfast/lab/temp_dir.hpp"
#include "holdfast/lab/tls_files.hpp"

namespace holdfast::lab {

class SingleServer::Impl {
public:
    struct Kind {
        const char *name, *program, *package;
        int ends, quits;  ///< signals: it ends as an administrator has it, and at once
    };

    /// `options`: those of any kind of server.
    template <class Options>
    Impl(const Kind& kind, const Options& options)
        : kind_(kind),
          password_(options.password),
          environment_(options.environment),
          cpus_(options.cpus),
          cap_(options.cap) {
        if (!options.tls) return;
        if constexpr (requires { options.certificate; }) {
            if (!options.certificate.ca.empty()) tls_ = options.certificate;
        }
        if (!tls_) tls_ = make_tls_files(directory_.path());
    }
    virtual ~Impl() = default;
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;

    virtual std::uint16_t port() const noexcept { return port_.number(); }
    const std::string& password() const noexcept { return password_; }
    /// Errors: LabError without TLS.
    const TlsFiles& tls() const;
    std::filesystem::path directory() const { return directory_.path(); }
    std::filesystem::path data() const { return directory_ / "data"; }
    std::string log() const;
    Process& process();
    void wait_ready(std::chrono::nanoseconds cap);
    void restart(Data);

protected:
    /// Starts it for the first time, on other ports where somebody has taken its own.
    void start();
    void launch();
    /// Ends it, if it runs.
    void end(Data);

    /// Makes a fresh data directory.
    virtual void make_data() = 0;
    /// Writes its configuration, and returns how to run it.
    virtual std::vector<std::string> command() = 0;
    /// Asks it for anything. Errors: LabError unless it answers as it should.
    virtual void ask() = 0;
    /// Tells a fresh server what belongs to its data.
    virtual void set_up() {}
    /// Takes other ports. False: it has to have these.
    virtual bool move();
    virtual void ask_to_end(Data);

    std::optional<TlsFiles> tls_;

private:
    std::filesystem::path log_file() const { return directory_ / "log"; }

    const Kind kind_;
    const std::string password_;
    const std::vector<std::pair<std::string, std::string>> environment_;
    const std::vector<int> cpus_;
    const std::chrono::nanoseconds cap_;
    TempDir directory_;
    Port port_ = free_port();
    std::optional<Process> process_;
};

class SqlServer::Impl : public SingleServer::Impl {
public:
    using SingleServer::Impl::Impl;

    virtual SqlRows sql(const std::string& text) const = 0;
    virtual const char* scheme() const noexcept = 0;

protected:
    void ask() override { sql("SELECT 1"); }
    /// The statement that gives the user `holdfast` a password.
    virtual std::string password_is(const std::string& password) const = 0;
    void set_up() override {
        if (!password().empty()) sql(password_is(password()));
    }
};

}  // namespace holdfast::lab
