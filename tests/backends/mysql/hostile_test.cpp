// Answers that no server gives: an error, and no crash, and no file of this machine.
#include "hostile_server.hpp"

#include <fstream>

#include "../sql/direct.hpp"
#include "../sql/hostile.hpp"
#include "holdfast/lab/temp_dir.hpp"

using namespace mysql_tests;

namespace {

/// As our table is found, by a server that says this of itself.
auto introduces(const Cells& hello) {
    return [hello](const std::string& statements) {
        Packets all;
        for (std::size_t at = 0; at < statements.size();) {
            const auto end = std::min(statements.find("; ", at), statements.size());
            const std::string one = statements.substr(at, end - at);
            at = end + 2;
            const std::string& status = at < statements.size() ? more_follows : the_last;
            Packets answer = ok(status);
            const auto columns = static_cast<unsigned>(my::columns_of(my::Sql::hello));
            Cells padded = hello;
            padded.resize(columns, "0");
            if (one.starts_with("SELECT CONNECTION_ID")) answer = rows({padded}, columns, status);
            if (one.starts_with("SELECT TABLE_COMMENT"))
                answer = rows({{my::table_format.comment(), "InnoDB"}}, 2, status);
            if (one.starts_with("SELECT GROUP_CONCAT")) answer = rows({{"name,slot"}}, 1, status);
            all.insert(all.end(), answer.begin(), answer.end());
        }
        return all;
    };
}
const Cells ours{"4242", "10.11.6-MariaDB", "1", "0", "1795475838555088", ""};

/// Says what it is, and then whatever.
Hostile introduced(const Cells& hello, Packets answer) {
    return {.login = ok(), .introduction = introduces(hello), .answer = std::move(answer)};
}

}  // namespace

TEST_CASE("an answer without the rows and columns of its statement is an error") {
    const std::pair<const char*, Packets> answers[] = {
        {"no row", rows({}, 11)},
        {"few columns", rows({{"4242", "f"}}, 2)},
        {"a write's", ok()},
        {"a write's, and more that never comes", ok(more_follows)},
        {"NULL", rows({Cells(11)}, 11)},
        {"no numbers", rows({Cells(12, "x")}, 12)},
        {"numbers that are too long", rows({Cells(12, std::string(40, '9'))}, 12)},
        {"too many rows", rows({Cells(12, "1"), Cells(12, "1")}, 12)},
        {"an error without words", {"\xff"}},
        {"an error",
         {"\xff\x7a\x04#42S02"
          "no such table"}},
        {"a row that ends early", {rows({}, 12)[0], "\x03"}},
        {"a column count beyond all", {"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f"}},
        {"nothing", {""}},
    };
    for (const bool known : {false, true})
        for (const auto& [what, answer] : answers) {
            INFO(what << ", introduced: " << known);
            Hostile how = introduced(ours, answer);
            if (!known) how.introduction = {};
            Acceptor server([&](Tcp::socket& s, std::size_t) { serve(how, s); });
            const auto client = open(url_at(server, "ttl=300ms&request_timeout=40ms"));
            if (known)
                call_everything(client);
            else
                CHECK_FALSE(client.probe().has_value());
        }
}

TEST_CASE("what was not executed for want of a prepared statement goes as text; all else counts") {
    const Packets granted_5 = {std::string("\0\1\x29\2\0\0\0", 7)};  // a row, 8 * 5 + 1
    const Packets grant = prepared(1, 6);
    enum Outcome { granted_now, failed, in_doubt };
    struct Answers {
        const char* what;
        Packets prepared, executed;
        Outcome outcome;
        int texts;  // sent in the end
    };
    const Answers all[] = {
        {"it is executed", grant, granted_5, granted_now, 1},
        {"no more may be prepared", error(1461), {}, granted_now, 3},
        {"it is not to be prepared", error(1295), {}, granted_now, 3},
        {"the session has it no longer", grant, error(1243), granted_now, 3},
        {"the table changes again and again", grant, error(1615), granted_now, 3},
        {"the disk is full", grant, error(1114), failed, 1},
        {"no end of preparing", {}, {}, in_doubt, 1},
        {"no end of executing", grant, {}, in_doubt, 1},
        {"values that it does not have", prepared(1, 5), granted_5, in_doubt, 1},
        {"rows", grant, rows({{"x"}}, 1), in_doubt, 1},
        {"more that never comes", grant, ok(more_follows), in_doubt, 1},
    };
    for (const Answers& its : all) {
        INFO(its.what);
        Hostile how = introduced(ours, granted_5);
        how.prepared = [&](const std::string& body) {
            return body[0] == '\x16' ? its.prepared : its.executed;
        };
        std::atomic<int> texts{0};
        Acceptor server([&](Tcp::socket& s, std::size_t) {
            serve(how, s, [&](const std::string& body) {
                if (body.starts_with("\x03UPDATE")) ++texts;
            });
        });
        Direct d(url_at(server, "request_timeout=1s"));
        auto first = d.step(my::Step::Kind::attempt, "N", "A"), second = first, third = first;
        second.owner = "B";
        third.owner = "C";
        REQUIRE(granted(d.run(first)));
        d.run(second);
        CHECK(granted(second) == (its.outcome == granted_now));
        CHECK(std::holds_alternative<hf::spi::Attempt::Failed>(second.outcome) ==
              (its.outcome == failed));
        CHECK(std::holds_alternative<hf::spi::Attempt::NoAnswer>(second.outcome) ==
              (its.outcome == in_doubt));
        if (its.outcome == granted_now) CHECK(granted(d.run(third)));
        CHECK(texts == its.texts);
    }
}

TEST_CASE("a packet whose statements the server no longer knows by name is tried one by one") {
    const std::string changed("\0\1\x29", 3), none("\0\0", 2);
    const Packets granted_now = {changed + the_last + none};
    int by_name = 0, refused_now = 0;
    Hostile how = introduced(ours, {});
    how.prepared = [](const std::string&) { return error(1461); };
    how.answers = [&](const std::string& statements) {
        if (statements.starts_with("PREPARE"))
            return joined({ok(more_follows), ok(more_follows), ok()});
        if (!statements.starts_with("BEGIN")) return granted_now;
        const bool names = statements.find("EXECUTE") != statements.npos;
        if (names && ++by_name == 2) {
            ++refused_now;
            return joined({ok(more_follows), error(1243)});
        }
        const Packets row = {changed + more_follows + none};
        return joined({ok(more_follows), row, row, ok()});
    };
    Acceptor server([&](Tcp::socket& s, std::size_t) { serve(how, s); });
    Direct d(url_at(server, "request_timeout=1s"));
    for (int packet = 0; packet < 5; ++packet) {
        INFO("packet " << packet);
        auto first = d.step(my::Step::Kind::attempt, "M", "A"), second = first;
        second.key = "N";
        my::Step* const both[] = {&first, &second};
        my::run_steps(*d.connection, both);
        CHECK(granted(first));
        CHECK(granted(second));
    }
    CHECK(by_name >= 2);
    CHECK(refused_now == 1);
}

TEST_CASE("a server that asks for a file of this machine gets none") {
    const lab::TempDir dir;
    const std::string file = dir / "secret";
    std::ofstream(file) << "s3cret";
    for (const bool known : {false, true}) {
        std::mutex mutex;
        std::string heard;
        Hostile how = introduced(ours, {"\xfb" + file});
        if (!known) how.introduction = {};
        Acceptor server([&](Tcp::socket& s, std::size_t) {
            serve(how, s, [&](const std::string& body) {
                const std::lock_guard hold(mutex);
                heard += body;
            });
        });
        call_everything(open(url_at(server, "ttl=300ms&request_timeout=40ms")));
        const std::lock_guard hold(mutex);
        CHECK_THAT(heard, ContainsSubstring("CONNECTION_ID"));
        CHECK(heard.find("s3cret") == std::string::npos);
    }
}

TEST_CASE("a server that another one's sessions come through is refused") {
    // Its connection is not the one that answers.
    const Hostile how = introduced({"4243", ours[1], ours[2], ours[3], ours[4], ours[5]}, ok());
    Acceptor server([&](Tcp::socket& s, std::size_t) { serve(how, s); });
    CHECK_THAT(refused(open(url_at(server, "request_timeout=1s")), "N", errc::bad_config),
               ContainsSubstring("proxy"));
}

TEST_CASE("a server that is too old says so") {
    const Hostile how =
        introduced({ours[0], "05.07.6-MariaDB", ours[2], ours[3], ours[4], ours[5]}, ok());
    Acceptor server([&](Tcp::socket& s, std::size_t) { serve(how, s); });
    CHECK_THAT(refused(open(url_at(server, "request_timeout=1s")), "N", errc::not_supported),
               ContainsSubstring("05.07"));
}

TEST_CASE("a server that never speaks costs the request time-out") {
    Acceptor server([](Tcp::socket& s, std::size_t) {
        char byte = 0;
        while (true)  // until the client gives up
            (void)boost::asio::read(s, boost::asio::buffer(&byte, 1));
    });
    const auto client = open(url_at(server, "request_timeout=1s"));
    for (const bool by_lane : {true, false}) {
        const auto start = boot_clock::now();
        CHECK(acquire_by(by_lane, client, "N", 0ms) == errc::unavailable);
        CHECK(boot_clock::now() - start < 3s);
    }
}
