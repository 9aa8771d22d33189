// The watcher is a shell script, because a program of our own would need a path to be found at, and
// running C++ after a fork without exec is unsafe in a process with threads.
#include "reaper.hpp"

#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "holdfast/lab/error.hpp"
#include "spawn.hpp"

namespace holdfast::lab::detail {
namespace {

// Input, a line each: "group SLOT PID", "directory SLOT PATH", "forget SLOT". The end of input is
// the order to clear away. Descendants are collected before anything is killed, since some servers
// give their workers groups of their own; killing comes before removing, as a live server writes
// files.
constexpr const char* script = R"(
trap '' HUP INT QUIT TERM PIPE
last=0
while read -r verb slot value; do
    case $verb in
    group|directory)
        eval "verb_$slot=\$verb value_$slot=\$value"
        [ "$slot" -gt "$last" ] && last=$slot ;;
    forget)
        unset "verb_$slot" "value_$slot" ;;
    esac
done

descendants() {
    for list in /proc/"$1"/task/*/children; do
        children=
        read -r children < "$list" || :
        for child in $children; do
            echo "$child"
            ( descendants "$child" )
        done
    done
}

slot=1
while [ "$slot" -le "$last" ]; do
    eval "verb=\${verb_$slot:-} value=\${value_$slot:-}"
    if [ "$verb" = group ]; then
        family=$(descendants "$value")
        kill -s KILL -- "-$value"
        for child in $family; do kill -s KILL "$child"; done
    fi
    slot=$((slot + 1))
done

slot=1
while [ "$slot" -le "$last" ]; do
    eval "verb=\${verb_$slot:-} value=\${value_$slot:-}"
    if [ "$verb" = directory ]; then
        round=0
        while [ -e "$value" ] && [ "$round" -lt 50 ]; do
            rm -rf -- "$value"
            round=$((round + 1))
        done
    fi
    slot=$((slot + 1))
done
)";

}  // namespace

Reaper& Reaper::instance() {
    // Never destroyed: objects with static storage may use it until the very end.
    static Reaper* const reaper = new Reaper;
    return *reaper;
}

Reaper::Reaper() {
    ::pthread_atfork([] { instance().mutex_.lock(); }, [] { instance().mutex_.unlock(); },
                     [] {
                         auto& self = instance();
                         // The child must not keep the socket open, or our death would go unseen.
                         if (self.socket_ >= 0) {
                             ::close(self.socket_);
                             self.socket_ = -1;
                         }
                         self.watched_.clear();
                         self.mutex_.unlock();
                     });
}

std::uint64_t Reaper::watch_group(pid_t leader) {
    return watch("group % " + std::to_string(leader));
}

std::uint64_t Reaper::watch_directory(const std::filesystem::path& path) {
    return watch("directory % " + path.string());
}

std::uint64_t Reaper::watch(const std::string& what) {
    const std::lock_guard guard(mutex_);
    const auto slot = next_slot_++;
    std::string line = what;
    line.replace(line.find('%'), 1, std::to_string(slot));
    line += '\n';
    if (socket_ < 0 || !send(line)) {
        start();
        bool sent = true;
        for (const auto& [other, text] : watched_) {
            sent = sent && send(text);
        }
        if (!sent || !send(line)) {
            throw LabError("the lab's reaper process cannot be reached");
        }
    }
    watched_.emplace(slot, std::move(line));
    return slot;
}

void Reaper::forget(std::uint64_t slot) noexcept {
    const std::lock_guard guard(mutex_);
    if (watched_.erase(slot) != 0 && socket_ >= 0) {
        send("forget " + std::to_string(slot) + "\n");
    }
}

bool Reaper::send(const std::string& line) noexcept {
    std::size_t done = 0;
    while (done < line.size()) {
        const auto sent = ::send(socket_, line.data() + done, line.size() - done, MSG_NOSIGNAL);
        if (sent <= 0) {
            if (sent < 0 && errno == EINTR) {
                continue;
            }
            return false;
        }
        done += static_cast<std::size_t>(sent);
    }
    return true;
}

void Reaper::start() {
    if (socket_ >= 0) {
        ::close(socket_);
        socket_ = -1;
    }
    int ends[2] = {-1, -1};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        throw LabError("cannot make a socket for the lab's reaper process");
    }
    SpawnRequest request;
    request.argv = {"/bin/sh", "-c", script, "holdfast-lab-reaper"};
    request.descriptors = {{ends[1], 0}};
    request.new_session = true;
    try {
        spawn(request);
    } catch (...) {
        ::close(ends[0]);
        ::close(ends[1]);
        throw;
    }
    ::close(ends[1]);
    socket_ = ends[0];
}

}  // namespace holdfast::lab::detail
