// The number of a node is that of the nodes made below its parent before, and a server
// that has counted to the end of 32 bits gives the last ones again and again.
#include <atomic>
#include <fstream>
#include <limits>
#include <sstream>
#include <thread>

#include "rig.hpp"

using namespace zookeeper_tests;

namespace {

std::uint32_t adler32(std::string_view bytes) {
    std::uint32_t a = 1, b = 0;
    for (const char c : bytes) {
        a = (a + static_cast<unsigned char>(c)) % 65521;
        b = (b + a) % 65521;
    }
    return b << 16U | a;
}

std::uint32_t number_at(const std::string& bytes, std::size_t at) {
    std::uint32_t n = 0;
    for (std::size_t i = 0; i < 4; ++i)
        n = n << 8U | static_cast<unsigned char>(bytes.at(at + i));
    return n;
}

void put(std::string& bytes, std::size_t at, std::uint32_t n) {
    for (std::size_t i = 0; i < 4; ++i)
        bytes.at(at + i) = static_cast<char>(n >> (24 - 8 * i) & 0xFFU);
}

/// In the transaction log: the creation of `child` was that of its parent's child number `count`.
bool rewrite(std::string& log, const std::string& child, std::uint32_t count) {
    // checksum 8, length 4; client 8, cxid 4, zxid 8, time 8, type 4; path, data, rights,
    // ephemeral, the parent's count
    const auto path = log.find(child);
    if (path == log.npos) return false;
    const std::size_t entry = path - 4 - 32;
    std::size_t at = path + child.size();
    const auto skip = [&] { at += 4 + number_at(log, at); };
    skip();  // data
    const auto rights = number_at(log, at);
    at += 4;
    for (std::uint32_t i = 0; i < rights; ++i) {
        at += 4;
        skip();
        skip();
    }
    put(log, at + 1, count);
    put(log, entry - 12, 0);
    put(log, entry - 8, adler32(std::string_view(log).substr(entry, number_at(log, entry - 4))));
    return true;
}

/// The next node below `parent` gets the number `next`.
void count_to(ZooKeeperServers& servers, const std::string& parent, std::uint32_t next) {
    const std::string child = parent + "/bump";
    {
        ZooKeeperClient plain(servers.connect_string());
        REQUIRE(plain.create(child, "x", ZOO_PERSISTENT).rc == ZOK);
    }
    servers.kill(0);
    bool done = false;
    for (const auto& file :
         std::filesystem::directory_iterator(servers.data_directory() / "version-2")) {
        if (!file.path().filename().string().starts_with("log.")) continue;
        std::stringstream all;
        all << std::ifstream(file.path(), std::ios::binary).rdbuf();
        std::string log = all.str();
        if (!rewrite(log, child, next)) continue;
        std::ofstream(file.path(), std::ios::binary) << log;
        done = true;
    }
    REQUIRE(done);
    servers.restart(0);
    servers.wait_ready();
    ZooKeeperClient plain(servers.connect_string());
    REQUIRE(plain.remove(child).rc == ZOK);
}

}  // namespace

TEST_CASE("a line whose numbers are used up gives no lock, says so, and heals") {
    auto servers = ZooKeeperServers::start(
        {.config = {"forceSync=no"}, .java = {"-Dzookeeper.digest.enabled=false"}});
    const std::string url = servers.url() + "?tick_time=100ms&ttl=20s";
    const std::string parent = "/holdfast/end";
    constexpr std::uint32_t left = 7;  // numbers that no other node gets
    const auto first = open(url);
    hold(*lock_of(first, "end")).release();
    count_to(servers, parent, std::numeric_limits<std::int32_t>::max() - left);

    struct Contender {
        hf::Client client;
        std::unique_ptr<hf::Lock> lock = lock_of(client, "end");
        hf::Diagnostics words = {};
        hf::error_code ended = {};
        hf::FencingToken last = {};
        int grants = 0;
    };
    std::vector<Contender> contenders;
    for (int i = 0; i < 4; ++i)
        contenders.push_back({.client = open(url)});
    std::atomic<int> inside{0}, together{0};
    std::vector<std::thread> threads;
    for (Contender& c : contenders)
        threads.emplace_back([&] {
            for (int times = 0; times < 20; ++times) {
                c.words = {};
                auto lease = c.lock->acquire({.wait = 1s, .diagnostics = &c.words});
                c.ended = lease ? hf::error_code() : lease.error();
                if (c.ended == errc::unavailable) break;
                if (!lease) continue;  // a busy machine; its number is gone all the same
                ++c.grants;
                c.last = lease->fencing_token();
                if (++inside > 1) ++together;
                // Long enough for the others to come in as well.
                if (!lab::stays_true([&] { return lease->valid(); }, 30ms)) ++together;
                --inside;
            }
        });
    for (auto& t : threads)
        t.join();
    CHECK(together == 0);
    int grants = 0;
    hf::FencingToken last;
    for (const Contender& c : contenders) {
        grants += c.grants;
        last = std::max(last, c.last);
        CHECK(c.ended == errc::unavailable);
        INFO(c.words.text());
        CHECK(c.words.text().find("numbers") != std::string::npos);
    }
    CHECK(grants > 0);
    CHECK(grants <= static_cast<int>(left));
    ZooKeeperClient plain(servers.connect_string());
    CHECK(plain.children(parent).children.empty());
    // As the server does with an empty container.
    CHECK(plain.remove(parent).rc == ZOK);
    CHECK(hold(*lock_of(first, "end")).fencing_token() > last);
}
