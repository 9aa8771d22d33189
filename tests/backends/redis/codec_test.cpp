// Bytes from a server are not trusted: whatever comes, the codec answers or breaks, within limits.
#include <hiredis/hiredis.h>

#include <random>

#include "catch.hpp"
#include "resp/codec.hpp"

using namespace holdfast::resp;

namespace {

Codec::Next read(std::string_view bytes, std::size_t limit = 65536) {
    Codec codec(limit);
    if (!codec.feed(bytes)) return Codec::Next::broken;
    return codec.next();
}

}  // namespace

TEST_CASE("codec: whole replies") {
    Codec codec(65536);
    REQUIRE(codec.feed("+OK\r\n-ERR no\r\n:42\r\n$3\r\nabc\r\n$-1\r\n*2\r\n$1\r\nx\r\n:7\r\n"));
    REQUIRE(codec.next() == Codec::Next::reply);
    CHECK((codec.reply().is(Reply::Type::status) && codec.reply().text == "OK"));
    REQUIRE(codec.next() == Codec::Next::reply);
    CHECK((codec.reply().is(Reply::Type::error) && codec.reply().text == "ERR no"));
    REQUIRE(codec.next() == Codec::Next::reply);
    CHECK((codec.reply().is(Reply::Type::integer) && codec.reply().integer == 42));
    REQUIRE(codec.next() == Codec::Next::reply);
    CHECK((codec.reply().is(Reply::Type::bulk) && codec.reply().text == "abc"));
    REQUIRE(codec.next() == Codec::Next::reply);
    CHECK(codec.reply().is(Reply::Type::nil));
    REQUIRE(codec.next() == Codec::Next::reply);
    REQUIRE((codec.reply().is(Reply::Type::array) && codec.reply().count == 2));
    CHECK(codec.reply().items()[0].text == "x");
    CHECK(codec.reply().items()[1].integer == 7);
    CHECK(codec.next() == Codec::Next::more);
}

TEST_CASE("codec: any split of a reply is the same reply") {
    const std::string bytes = "*3\r\n$7\r\nmessage\r\n$0\r\n\r\n*1\r\n:-5\r\n";
    for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
        Codec codec(65536);
        REQUIRE(codec.feed(std::string_view(bytes).substr(0, cut)));
        if (cut < bytes.size()) REQUIRE(codec.next() == Codec::Next::more);
        REQUIRE(codec.feed(std::string_view(bytes).substr(cut)));
        REQUIRE(codec.next() == Codec::Next::reply);
        CHECK(codec.reply().items()[2].items()[0].integer == -5);
    }
}

TEST_CASE("codec: nonsense breaks it for good") {
    CHECK(read("HTTP/1.1 400 Bad Request\r\n\r\n") == Codec::Next::broken);
    CHECK(read("$3\r\nabcXY") == Codec::Next::broken);
    CHECK(read(":12x\r\n") == Codec::Next::broken);
    CHECK(read("%1\r\n+a\r\n+b\r\n") == Codec::Next::broken);
    CHECK(read("*300000\r\n") == Codec::Next::broken);
    CHECK(read("*2147483647\r\n") == Codec::Next::broken);
    std::string deep;
    for (int i = 0; i < 20; ++i)
        deep += "*1\r\n";
    CHECK(read(deep) == Codec::Next::broken);
    Codec codec(65536);
    REQUIRE(codec.feed("?\r\n"));
    CHECK(codec.next() == Codec::Next::broken);
    CHECK(codec.next() == Codec::Next::broken);
    CHECK_FALSE(codec.feed("+OK\r\n"));
}

TEST_CASE("codec: an absurd length ends at the limit") {
    Codec codec(1000);
    REQUIRE(codec.feed("$9223372036854775807\r\n"));
    std::string more(100, 'x');
    int fed = 0;
    while (codec.next() == Codec::Next::more && codec.feed(more))
        REQUIRE(++fed < 20);
    CHECK(fed >= 9);
}

TEST_CASE("codec: replies one after the other are no large reply") {
    Codec codec(64);
    for (int i = 0; i < 1000; ++i) {
        REQUIRE(codec.feed("$5\r\nhello\r\n"));
        REQUIRE(codec.next() == Codec::Next::reply);
    }
}

TEST_CASE("codec: random bytes") {
    const auto seed = std::random_device{}();
    INFO("seed " << seed);
    std::mt19937 random(seed);
    const std::string_view alphabet = "+-:$*\r\n0123456789abc";
    for (int i = 0; i < 20000; ++i) {
        std::string bytes;
        for (auto n = random() % 60; n > 0; --n)
            bytes += alphabet[random() % alphabet.size()];
        Codec codec(256);
        if (!codec.feed(bytes)) continue;
        for (int replies = 0; codec.next() == Codec::Next::reply; ++replies)
            REQUIRE(replies < 60);
    }
}

TEST_CASE("command: arguments keep every byte") {
    Command c;
    const std::string odd("a\0b\r\n%s", 8);
    c.add("SET").add(odd).add_number(-42);
    std::string bytes;
    c.encode(bytes);
    CHECK(bytes == "*3\r\n$3\r\nSET\r\n$8\r\n" + odd + "\r\n$3\r\n-42\r\n");
    c.replace(0, "GETSET");
    bytes.clear();
    c.encode(bytes);
    CHECK(bytes.starts_with("*3\r\n$6\r\nGETSET\r\n"));
}

TEST_CASE("command: the same bytes as hiredis writes") {
    const auto seed = std::random_device{}();
    INFO("seed " << seed);
    std::mt19937 random(seed);
    for (int i = 0; i < 2000; ++i) {
        Command c;
        std::vector<std::string> words(1 + random() % 40);
        for (std::string& word : words) {
            if (random() % 4 == 0) {
                const auto number = static_cast<long long>(random()) - (1LL << 31U);
                c.add_number(number);
                word = std::to_string(number);
            } else {
                word.resize(random() % (random() % 8 == 0 ? 3000 : 12));
                for (char& letter : word)
                    letter = static_cast<char>(random());
                c.add(word);
            }
        }
        std::vector<const char*> texts;
        std::vector<std::size_t> sizes;
        for (const std::string& word : words) {
            texts.push_back(word.data());
            sizes.push_back(word.size());
        }
        char* expected = nullptr;
        const auto size = redisFormatCommandArgv(&expected, static_cast<int>(words.size()),
                                                 texts.data(), sizes.data());
        REQUIRE(size > 0);
        std::string bytes = "before";
        c.encode(bytes);
        REQUIRE(bytes == "before" + std::string(expected, static_cast<std::size_t>(size)));
        redisFreeCommand(expected);
    }
}
