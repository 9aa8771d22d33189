// Three network namespaces on one bridge, for servers that are cut off from each other while their
// clients reach them. Only in network and mount namespaces of the program's own (`unshare --net
// --mount`), so that nothing is left behind and nobody else is disturbed.
#pragma once
#include <sys/mount.h>

#include <chrono>
#include <string>
#include <vector>

#include "holdfast/lab/error.hpp"
#include "holdfast/lab/process.hpp"
#include "holdfast/lab/temp_dir.hpp"

namespace holdfast::testing {

/// This process is on the bridge as well. Errors: lab::LabError, with the words of the command.
class Net {
public:
    static constexpr std::size_t size = 3;

    Net() {
        if (::mount("none", "/run", "tmpfs", 0, nullptr) != 0)
            throw lab::LabError("no tmpfs at /run: this needs namespaces of its own");
        run({"ip", "link", "set", "lo", "up"});
        run({"ip", "link", "add", "br0", "type", "bridge"});
        run({"ip", "addr", "add", "10.77.0.254/24", "dev", "br0"});
        run({"ip", "link", "set", "br0", "up"});
        for (std::size_t i = 0; i < size; ++i) {
            const auto outside = "v" + std::to_string(i);
            run({"ip", "netns", "add", name(i)});
            run({"ip", "link", "add", outside, "type", "veth", "peer", "name", "eth0", "netns",
                 name(i)});
            run({"ip", "link", "set", outside, "master", "br0"});
            run({"ip", "link", "set", outside, "up"});
            in(i, {"ip", "link", "set", "lo", "up"});
            in(i, {"ip", "addr", "add", host(i) + "/24", "dev", "eth0"});
            in(i, {"ip", "link", "set", "eth0", "up"});
        }
    }

    static std::string host(std::size_t i) { return "10.77.0." + std::to_string(i + 1); }
    /// What comes before the command of the server there.
    static std::vector<std::string> launcher(std::size_t i) {
        return {"ip", "netns", "exec", name(i)};
    }

    /// Nothing passes between that server and the other two, in either direction; its clients
    /// reach it. The other two hear at once that it is gone, it hears nothing.
    static void isolate(std::size_t i, bool others_hear) {
        for (std::size_t k = 0; k < size; ++k) {
            if (k == i) continue;
            in(k, {"iptables", "-A", "OUTPUT", "-d", host(i), "-j", "DROP"});
            in(k, {"iptables", "-A", "INPUT", "-s", host(i), "-j", "DROP"});
            if (others_hear) in(k, {"ss", "-K", "dst", host(i)});
        }
    }
    static void heal() {
        for (std::size_t k = 0; k < size; ++k)
            in(k, {"iptables", "-F"});
    }

private:
    static std::string name(std::size_t i) { return "member" + std::to_string(i); }
    static void in(std::size_t i, std::vector<std::string> argv) {
        const auto first = launcher(i);
        argv.insert(argv.begin(), first.begin(), first.end());
        run(std::move(argv));
    }
    static void run(std::vector<std::string> argv) {
        const lab::TempDir dir;
        lab::ProcessOptions options;
        options.argv = std::move(argv);
        options.log = dir.path() / "log";
        lab::Process process(std::move(options));
        const auto ended = process.wait(std::chrono::seconds(20));
        if (!ended || ended->by_signal || ended->code != 0)
            throw lab::LabError(process.command_line() + "\n" + process.log_tail());
    }
};

}  // namespace holdfast::testing
