#include "processes/peer.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

namespace holdfast::bench {

namespace {

/// Starts it with both its ends on `socket`; 0 or an error number.
int spawn(const PeerStart& start, int socket, pid_t& pid) {
    std::vector<char*> argv;
    for (const std::string& word : start.argv)
        argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, socket, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&files, socket, STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&files, STDERR_FILENO, start.log.c_str(),
                                     O_WRONLY | O_CREAT | O_TRUNC, 0600);
    // A group of its own: ^C on the terminal is for the bench, which then ends its peers.
    posix_spawnattr_t how;
    posix_spawnattr_init(&how);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setpgroup(&how, 0);
    const int code = posix_spawnp(&pid, argv[0], &files, &how, argv.data(), environ);
    posix_spawnattr_destroy(&how);
    posix_spawn_file_actions_destroy(&files);
    return code;
}

/// The last line with something on it.
std::string last_line(const std::filesystem::path& log) {
    std::ifstream in(log);
    std::string last;
    for (std::string line; std::getline(in, line);)
        if (line.find_first_not_of(" \t") != std::string::npos) last = line;
    return last;
}

}  // namespace

PeerProcess::PeerProcess(PeerStart start) : start_(std::move(start)) {
    int both[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both) != 0)
        throw PeerError(std::string("no socket: ") + std::strerror(errno));
    const int code = spawn(start_, both[1], pid_);
    close(both[1]);
    socket_ = both[0];
    if (code == 0) return;
    pid_ = -1;
    if (code == ENOENT) return;  // hello() says that it is missing
    close(socket_);
    throw PeerError(start_.argv[0] + " cannot be started: " + std::strerror(code));
}

PeerProcess::~PeerProcess() {
    close(socket_);
    if (pid_ < 0) return;
    const int ended = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
    pollfd wait{ended, POLLIN, 0};
    if (ended < 0 || poll(&wait, 1, 2000) != 1) ::kill(pid_, SIGKILL);
    if (ended >= 0) close(ended);
    waitpid(pid_, nullptr, 0);
}

PeerSaid PeerProcess::hello(double seconds) {
    if (pid_ < 0) {
        PeerSaid said;
        said.kind = PeerSaid::Kind::missing;
        said.words = start_.package;
        return said;
    }
    const std::string answer = line(seconds);
    PeerSaid said = parse_peer(answer);
    return said.kind == PeerSaid::Kind::missing ? said : parse_peer(answer, PeerSaid::Kind::ready);
}

std::vector<double> PeerProcess::block(double seconds, double patience) {
    return ask("block " + std::to_string(seconds), PeerSaid::Kind::block, seconds + patience).us;
}

void PeerProcess::hold(double patience) {
    ask("hold", PeerSaid::Kind::held, patience);
}

void PeerProcess::free(double patience) {
    ask("free", PeerSaid::Kind::freed, patience);
}

PeerSaid PeerProcess::ask(const std::string& words, PeerSaid::Kind wanted, double seconds) {
    const std::string request = words + "\n";
    if (send(socket_, request.data(), request.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(request.size()))
        fail("it does not listen any more");
    return parse_peer(line(seconds), wanted);
}

std::string PeerProcess::line(double seconds) {
    const auto start = Clock::now();
    for (std::size_t looked = 0;;) {
        const auto end = buffer_.find('\n', looked);
        if (end != std::string::npos) {
            std::string line = buffer_.substr(0, end);
            buffer_.erase(0, end + 1);
            return line;
        }
        looked = buffer_.size();
        const double left = seconds - seconds_since(start);
        pollfd wait{socket_, POLLIN, 0};
        const int ready = poll(&wait, 1, static_cast<int>(1000 * std::max(left, 0.0)));
        if (ready < 0 && errno == EINTR) continue;
        if (ready <= 0) fail("it said nothing in time");
        char some[65536];
        const ssize_t got = recv(socket_, some, sizeof some, 0);
        if (got <= 0) fail("it ended without an answer");
        buffer_.append(some, static_cast<std::size_t>(got));
    }
}

void PeerProcess::fail(const std::string& why) const {
    const std::string last = last_line(start_.log);
    throw PeerError(why + (last.empty() ? "" : ": " + last));
}

}  // namespace holdfast::bench
