// Outbox: a reader that is away, slow or gone costs lines at most, never time.
#include "outbox.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string>
#include <thread>

#include "catch.hpp"

using namespace holdfast;
using namespace holdfast::cli;

namespace {

std::string gap(std::size_t n) {
    return "dropped " + std::to_string(n) + '\n';
}

struct Ends {
    UniqueFd out, in;
};

Ends small_pipe() {
    std::array<int, 2> fds{};
    REQUIRE(::pipe2(fds.data(), O_CLOEXEC) == 0);
    REQUIRE(::fcntl(fds[1], F_SETPIPE_SZ, 4096) == 4096);
    return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

Ends sockets() {
    std::array<int, 2> fds{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()) == 0);
    return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

std::string read_some(int fd) {
    std::string text(8192, '\0');
    const ssize_t n = ::read(fd, text.data(), text.size());
    text.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
    return text;
}

std::string numbered(int n) {
    return std::to_string(n) + std::string(99, '.') + '\n';
}

/// Every line is one that was written, in order; what is missing is what the gaps say.
void check_lines(const std::string& text, int written) {
    int next = 0;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = text.find('\n', at);
        REQUIRE(end != std::string::npos);
        const std::string line = text.substr(at, end - at + 1);
        at = end + 1;
        if (line.starts_with("dropped "))
            next += std::stoi(line.substr(8));
        else
            REQUIRE(line == numbered(next++));
    }
    CHECK(next == written);
}

void fill_and_read(const Ends& ends) {
    Outbox box(ends.in.get(), gap);
    for (int n = 0; n < 5000; ++n)
        REQUIRE(box.add(numbered(n)));
    std::string all;
    std::thread reader([&] {
        while (!all.ends_with("end\n"))
            all += read_some(ends.out.get());
    });
    REQUIRE(box.drain(milliseconds(10'000)) == 0);
    REQUIRE(box.add("end\n"));
    CHECK(box.drain(milliseconds(10'000)) == 0);
    reader.join();
    CHECK(all.find("dropped ") != std::string::npos);
    check_lines(all.substr(0, all.size() - 4), 5000);
}

}  // namespace

TEST_CASE("Outbox: without a reader the oldest lines go, and it is said how many") {
    fill_and_read(small_pipe());
    fill_and_read(sockets());
}

TEST_CASE("Outbox: drain gives up, and says what was lost") {
    const Ends ends = small_pipe();
    Outbox box(ends.in.get(), gap);
    for (int n = 0; n < 100; ++n)
        REQUIRE(box.add(numbered(n)));
    const std::size_t left = box.drain(milliseconds(20));
    CHECK(left > 50);
    CHECK(left < 100);
}

TEST_CASE("Outbox: others who share the descriptor still wait in it") {
    const Ends ends = small_pipe();
    Outbox box(ends.in.get(), gap);
    REQUIRE(box.add("line\n"));
    CHECK((::fcntl(ends.in.get(), F_GETFL) & O_NONBLOCK) == 0);
    CHECK(read_some(ends.out.get()) == "line\n");
}

TEST_CASE("Outbox: a reader that is gone is an error, once") {
    std::signal(SIGPIPE, SIG_IGN);
    for (Ends& ends : std::array<Ends, 2>{small_pipe(), sockets()}) {
        Outbox box(ends.in.get(), gap);
        ends.out.reset();
        CHECK_FALSE(box.add("line\n"));
        CHECK(errno == EPIPE);
        CHECK(box.add("line\n"));
        CHECK(box.drain(milliseconds(0)) == 0);
    }
}
