// The ready-made sink: which events it writes, one line each, and what a name cannot do to it.
#include "holdfast/log.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>

#include "catch.hpp"
#include "holdfast/lab/wait_until.hpp"
#include "holdfast/spi/safe_text.hpp"
#include "scripted.hpp"

namespace hf = holdfast;
using EventKind = hf::Event::Kind;
using hf::errc;
using namespace std::chrono_literals;

namespace {

/// Standard error goes into a pipe meanwhile; text() is what came so far.
class Stderr {
public:
    Stderr() : saved_(::dup(STDERR_FILENO)) {
        REQUIRE(::pipe2(ends_.data(), O_CLOEXEC | O_NONBLOCK) == 0);
        ::dup2(ends_[1], STDERR_FILENO);
    }
    Stderr(const Stderr&) = delete;
    Stderr& operator=(const Stderr&) = delete;
    ~Stderr() {
        ::dup2(saved_, STDERR_FILENO);
        for (const int fd : {saved_, ends_[0], ends_[1]})
            ::close(fd);
    }
    const std::string& text() {
        char more[4096];
        for (ssize_t n = 0; (n = ::read(ends_[0], more, sizeof more)) > 0;)
            text_.append(more, static_cast<std::size_t>(n));
        return text_;
    }

private:
    int saved_;
    std::array<int, 2> ends_{};
    std::string text_;
};

hf::Event event_of(EventKind kind, std::string name = "nightly") {
    hf::Event e;
    e.kind = kind;
    e.name = std::move(name);
    e.token = hf::FencingToken{88};
    return e;
}

constexpr std::array all_kinds{EventKind::waiting,   EventKind::acquired, EventKind::at_risk,
                               EventKind::recovered, EventKind::in_doubt, EventKind::lost,
                               EventKind::released};

}  // namespace

TEST_CASE("log_line: what each event says", "[core]") {
    hf::Event acquired = event_of(EventKind::acquired), at_risk = event_of(EventKind::at_risk);
    hf::Event lost = event_of(EventKind::lost), warning;
    acquired.took = 12ms;
    at_risk.left = 6600ms;
    at_risk.reason = make_error_code(errc::unavailable);
    lost.reason = make_error_code(errc::revoked);
    warning.kind = EventKind::warning;
    warning.text = "evicts keys";
    CHECK(log_line(event_of(EventKind::waiting)) == "waiting for \"nightly\"");
    CHECK(log_line(acquired) == "acquired \"nightly\" after 12 ms, token 88");
    CHECK(log_line(at_risk) ==
          "the server did not answer a renewal of \"nightly\" (the lock server cannot be reached); "
          "6600 ms left, token 88");
    CHECK(log_line(event_of(EventKind::recovered)) ==
          "the server answers renewals of \"nightly\" again, token 88");
    CHECK(log_line(lost) == "LOST lock \"nightly\" (an operator broke the lock), token 88");
    CHECK(log_line(event_of(EventKind::in_doubt)) ==
          "the server did not answer about \"nightly\"; resolving the request");
    CHECK(log_line(event_of(EventKind::released)) == "released \"nightly\", token 88");
    CHECK(log_line(warning) == "evicts keys");
    warning.kind = EventKind::moved;
    warning.text = "from a:1 to b:1";
    CHECK(log_line(warning) == "the server moved from a:1 to b:1");
    lost.token = {};
    CHECK(log_line(lost) == "LOST lock \"nightly\" (an operator broke the lock)");
}

TEST_CASE("log_line: no name and no server's words write to a terminal, or a second line",
          "[core]") {
    const std::string evil = "a\x1b[31m\nholdfast: LOST\xc2\x9b\xe2\x80\xae\"\\\xff";
    const std::string shown = R"("a\u{1b}[31m\nholdfast: LOST\u{9b}\u{202e}\"\\\xff")";
    for (const EventKind kind : all_kinds)
        CHECK(log_line(event_of(kind, evil)).find(shown) != std::string::npos);
    hf::Event warning;
    warning.kind = EventKind::warning;
    warning.text = evil;
    const std::string line = log_line(warning);
    CHECK(line.find_first_of("\x1b\n\xff") == std::string::npos);
    CHECK(log_line(event_of(EventKind::lost, std::string(512, 'x'))) ==
          "LOST lock \"" + std::string(120, 'x') + "...\", token 88");
}

TEST_CASE("spi: text is made UTF-8, and escaped", "[core]") {
    namespace spi = holdfast::spi;
    const std::string whole = "\xc3\xbc \xe2\x82\xac \xf0\x9f\x94\x92";
    CHECK(spi::clean_utf8(whole) == whole);
    CHECK(spi::escaped_name(whole) == whole);
    // A byte alone, an overlong form, a surrogate, one cut short.
    CHECK(spi::clean_utf8("\xff|\xc0\x80|\xed\xa0\x80|\xe2\x82") ==
          "\xEF\xBF\xBD|\xEF\xBF\xBD\xEF\xBF\xBD|\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD|"
          "\xEF\xBF\xBD\xEF\xBF\xBD");
    CHECK(spi::escaped_text("a\nb\t\"\\\x01") == "a\nb\\t\"\\\\u{1}");
    CHECK(spi::escaped_name("a\nb\t\"\\\x0f") == R"(a\nb\t\"\\\u{f})");
    CHECK(spi::escaped_name("\x05\xff") == R"(\u{5}\xff)");
    CHECK(spi::escaped_json("{\"a\\\\\":\"\xc2\x9b\xe2\x80\xae\x7f\xc3\xbc\"}") ==
          "{\"a\\\\\":\"\\u009b\\u202e\\u007f\xc3\xbc\"}");
    // Never cut inside a character.
    const std::string long_name = std::string(119, 'x') + "\xc3\xbc";
    CHECK(spi::quoted_name(long_name) == '"' + std::string(119, 'x') + "...\"");
}

TEST_CASE("log_to_stderr: losses and warnings by default, more with a verbosity", "[core]") {
    const auto written = [](hf::Verbosity v) {
        Stderr err;
        const hf::EventSink sink = hf::log_to_stderr(v);
        for (const EventKind kind : all_kinds)
            sink(event_of(kind));
        hf::Event warning;
        warning.kind = EventKind::warning;
        warning.text = "evicts keys";
        sink(warning);
        return err.text();
    };
    const std::string losses = "holdfast: LOST lock \"nightly\", token 88\nholdfast: evicts keys\n";
    CHECK(written(hf::Verbosity::losses) == losses);
    const std::string trouble = written(hf::Verbosity::trouble);
    CHECK(std::count(trouble.begin(), trouble.end(), '\n') == 5);
    CHECK(trouble.find("holdfast: waiting") == std::string::npos);
    const std::string all = written(hf::Verbosity::all);
    CHECK(std::count(all.begin(), all.end(), '\n') == 8);
    CHECK(all.ends_with("holdfast: released \"nightly\", token 88\nholdfast: evicts keys\n"));
}

TEST_CASE("log_to_stderr: a full pipe costs lines, and no exception", "[core]") {
    Stderr err;
    const hf::EventSink sink = hf::log_to_stderr();
    for (int n = 0; n < 5'000; ++n)
        sink(event_of(EventKind::lost));
    CHECK(err.text().starts_with("holdfast: LOST lock \"nightly\", token 88\n"));
}

TEST_CASE("log_to_stderr: a client's losses, after one line of the user's", "[core]") {
    const auto server = std::make_shared<scripted::Server>();
    server->renew = [](hf::spi::Held& h) {
        h.renewal = hf::spi::Held::Renewal::lost;
        h.renewal_error = make_error_code(errc::revoked);
    };
    Stderr err;
    {
        const auto client = hf::Client::open("scripted:", {.registry = &scripted::registry(server),
                                                           .events = hf::log_to_stderr()})
                                .value();
        const auto lock = client.make_lock("nightly").value();
        auto lease = lock->acquire().value();
        CHECK_FALSE(lease.renew());
        holdfast::lab::wait_until([&] { return !err.text().empty(); }, 10s, "a line");
    }
    CHECK(err.text() == "holdfast: LOST lock \"nightly\" (an operator broke the lock), token 1\n");
}
