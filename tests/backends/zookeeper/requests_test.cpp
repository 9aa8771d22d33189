// The README says exactly what is sent; here it is read off the wire. And what a hand-over costs.
#include <algorithm>
#include <atomic>
#include <iostream>
#include <mutex>

#include "readme.hpp"
#include "rig.hpp"

using namespace zookeeper_tests;

namespace {

/// Reads big-endian numbers and texts off a request.
struct Reader {
    std::string_view bytes;
    std::int32_t number() {
        REQUIRE(bytes.size() >= 4);
        std::uint32_t n = 0;
        for (int i = 0; i < 4; ++i)
            n = n << 8U | static_cast<unsigned char>(bytes[static_cast<std::size_t>(i)]);
        bytes.remove_prefix(4);
        return static_cast<std::int32_t>(n);
    }
    std::string text() {
        const auto n = static_cast<std::size_t>(std::max(number(), 0));
        REQUIRE(bytes.size() >= n);
        const std::string out(bytes.substr(0, n));
        bytes.remove_prefix(n);
        return out;
    }
};

/// GUID and sequence of a node are different each time.
std::string without_numbers(std::string path) {
    const auto at = path.find("_c_");
    if (at == path.npos) return path;
    path.replace(at + 3, 36, "GUID");
    for (const std::string ending : {"-lock-", "-lease-", "__READ__", "__WRIT__"}) {
        const auto begin = path.find(ending);
        const auto digits = begin + ending.size();
        if (begin != path.npos && path.size() > digits) path.replace(digits, path.npos, "SEQ");
    }
    return path;
}

std::string one(Reader& r, std::int32_t type) {
    switch (type) {
        case 1:
        case 15:
            return std::string(type == 15 ? "create2 " : "create ") + without_numbers(r.text());
        case 2:
            return "delete " + without_numbers(r.text());
        case 4:
            return "getData " + without_numbers(r.text());
        case 5:
            return "setData " + without_numbers(r.text());
        case 8:
            return "getChildren " + without_numbers(r.text());
        case 9:
            return "sync " + without_numbers(r.text());
        case 19:
            return "createContainer " + without_numbers(r.text());
        case 14: {
            std::string all;
            while (true) {
                const auto part = r.number();
                const bool done = r.bytes[0] != 0;
                r.bytes.remove_prefix(1);
                r.number();
                if (done) break;
                all += (all.empty() ? "" : ", ") + one(r, part);
                if (part == 1) {
                    r.text();  // the data
                    for (auto n = r.number(); n > 0; --n) {
                        r.number();
                        r.text(), r.text();
                    }
                }
                r.number();  // the version, or the kind of node
            }
            return "multi(" + all + ")";
        }
        default:
            return "type " + std::to_string(type);
    }
}

std::string shown(const std::string& sent) {
    Reader stream{sent};
    std::string out;
    while (!stream.bytes.empty()) {
        const std::string bytes = stream.text();
        Reader request{bytes};
        request.number();  // xid
        const auto type = request.number();
        if (type == 11) continue;  // ping
        const auto text = one(request, type);
        if (text.find("_hf_session-") != text.npos) continue;  // heartbeat
        out += (out.empty() ? "" : "; ") + text;
    }
    return out;
}

}  // namespace

TEST_CASE("requests: one acquire and release, exactly as the README has it") {
    const auto rows = test_support::requests_of(ZOOKEEPER_README);
    REQUIRE(rows.size() == 8);
    lab::Proxy proxy(server().port());
    const std::string base = "zookeeper://127.0.0.1:" + std::to_string(proxy.port());
    const auto record = [&](const std::string& query, const std::string& name, int used) {
        const auto client = open(base + "?ttl=60s&tick_time=100ms" + query);
        hold(*lock_of(client, "warm")).release();
        for (int i = 0; i < used; ++i)
            hold(*lock_of(client, name)).release();
        proxy.record();
        auto lease = hold(*lock_of(client, name));
        CHECK(lease.release() == hf::ReleaseResult::released);
        return shown(proxy.recorded(lab::Direction::to_server));
    };
    CHECK(record("", "N", 2) == rows.at("default"));
    CHECK(record("&robust=yes", "N", 2) == rows.at("robust=yes"));
    CHECK(record("", "O", 1) == rows.at("the second time"));
    CHECK(record("", "M", 0) == rows.at("a name that this session has not seen"));

    const auto client = open(base + "?ttl=60s&tick_time=100ms");
    const auto of_kind = [&](const std::string& name, const hf::LockOptions& kind,
                             hf::AcquireOptions options, bool downgrades = false) {
        options.wait = 10s;
        const auto lock = lock_of(client, name, kind);
        for (int i = 0; i < 2; ++i)
            REQUIRE(lock->acquire(options)->release() == hf::ReleaseResult::released);
        lab::wait_until([&] { return holders_of(client, name) == 0U; }, 10s, "it is free");
        proxy.record();
        auto lease = lock->acquire(options);
        REQUIRE(lease.has_value());
        if (downgrades) {
            proxy.record();
            CHECK(lease->downgrade().has_value());
            return shown(proxy.recorded(lab::Direction::to_server));
        }
        CHECK(lease->release() == hf::ReleaseResult::released);
        return shown(proxy.recorded(lab::Direction::to_server));
    };
    const hf::LockOptions readers{.kind = hf::Kind::shared_mutex},
        permits{.kind = hf::Kind::semaphore, .limit = 5};
    CHECK(of_kind("R", readers, {.mode = hf::Mode::shared}) == rows.at("shared"));
    CHECK(of_kind("R", readers, {}) == rows.at("exclusive, of a shared_mutex"));
    CHECK(of_kind("R", readers, {}, true) == rows.at("its downgrade"));
    CHECK(of_kind("P", permits, {.permits = 2}) == rows.at("two permits"));
}

TEST_CASE("a hand-over costs at most six packets, however many wait") {
    for (const int waiters : {1, 10, 100}) {
        const std::string name = "packets-" + std::to_string(waiters);
        const std::string url = server().url() + "?ttl=60s&tick_time=100ms";
        // Each waiter has a session of its own: nobody knows of the others but by the server.
        std::vector<hf::Client> clients;
        std::mutex mutex;
        std::vector<hf::Lease> granted;
        std::atomic<int> done{0};
        auto holder = hold(*lock_of(open(url), name));
        const auto watcher = open(url);
        for (int i = 0; i < waiters; ++i) {
            clients.push_back(open(url));
            lock_of(clients.back(), name)
                ->async_acquire({.wait = 120s}, [&](hf::error_code ec, hf::Lease l) {
                    const std::lock_guard hold_it(mutex);
                    if (!ec) granted.push_back(std::move(l));
                    ++done;
                });
        }
        lab::wait_until(
            [&] {
                const auto seen = watcher.inspect(name);
                return seen && seen->waiters.size() == static_cast<std::size_t>(waiters);
            },
            20s, "all are in line");
        const auto requests = [&] {
            std::uint64_t n = 0;
            for (const auto& c : clients)
                n += c.stats().requests;
            return n;
        };
        // Asking counts as well.
        const auto between = [](auto from, auto to) {
            return (to.received - from.received) + (to.sent - from.sent);
        };
        std::uint64_t own = 1000;
        for (int i = 0; i < 5; ++i) {
            const auto before = server().packets();
            own = std::min(own, between(before, server().packets()));
        }
        std::vector<std::uint64_t> packets, asked;
        for (int next = 1; next <= waiters; ++next) {
            const auto requests_before = requests();
            const auto before = server().packets();
            if (next == 1) {
                holder.release();
            } else {
                const std::lock_guard hold_it(mutex);
                granted.back().release();
            }
            lab::wait_until([&] { return done == next; }, 10s, "the next is granted");
            const auto all = between(before, server().packets());
            packets.push_back(all - std::min(all, own));
            asked.push_back(requests() - requests_before);
        }
        // The middle one: heartbeats and looks of a hundred sessions fall into some of them.
        std::sort(packets.begin(), packets.end());
        std::sort(asked.begin(), asked.end());
        const auto middle = packets[packets.size() / 2];
        std::cout << waiters << " waiters: " << middle << " packets for a hand-over, "
                  << asked[asked.size() / 2] << " requests of the waiters\n";
        // Delete, its answer, the event. A single sample may be taken before all are counted.
        if (waiters > 1) CHECK(middle >= 3);
        CHECK(middle <= 6);
        granted.clear();
    }
}
