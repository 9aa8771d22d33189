// Answers that are late, false, foreign, too long or none of etcd's, from members of our own.
#include <holdfast/holdfast.hpp>
#include <holdfast/lab/wait_until.hpp>

#include "bare.hpp"
#include "catch.hpp"
#include "fake_member.hpp"

namespace hf = holdfast;
namespace lab = holdfast::lab;
using hf::errc;
using holdfast::test::Bare;
using holdfast::test::FakeCluster;
using holdfast::test::FakeMember;
namespace method = holdfast::etcd::method;
namespace rpc = holdfast::etcd::rpc;
using namespace std::chrono_literals;
using Reply = FakeMember::Reply;

namespace {

hf::Client client_of(const std::string& url) {
    return hf::Client::open(url).value();
}

struct Answered {
    hf::error_code why;
    std::string words;
};

/// One acquisition of a name, which has to fail.
Answered refused(const hf::Client& client, hf::milliseconds wait = 0ms) {
    hf::Diagnostics words;
    hf::AcquireOptions options;
    options.wait = wait;
    options.diagnostics = &words;
    const auto lease = client.make_lock("it").value()->acquire(options);
    if (lease) return {{}, "it was granted"};
    return {lease.error(), words.text()};
}

/// Who waits for "it", with what became of that.
struct Waiter {
    explicit Waiter(const hf::Client& client, hf::milliseconds wait = 60s)
        : lock(client.make_lock("it").value()) {
        lock->async_acquire({.wait = wait}, [state = state](hf::error_code ec, hf::Lease l) {
            state->why = ec;
            state->lease = std::move(l);
            state->over = true;
        });
    }
    bool granted() const { return state->over && !state->why; }
    struct State {
        std::atomic<bool> over{false};
        hf::error_code why;
        hf::Lease lease;
    };
    std::unique_ptr<hf::Lock> lock;
    std::shared_ptr<State> state = std::make_shared<State>();
};

std::size_t keys_at(FakeCluster& cluster, const std::string& line) {
    const std::lock_guard hold(cluster.mutex);
    std::size_t found = 0;
    for (const auto& [key, is] : cluster.store.keys)
        found += key.starts_with(line) ? 1 : 0;
    return found;
}

/// What other clients of the members do.
void put(FakeMember& member, const std::string& key, const std::string& value, std::int64_t lease) {
    rpc::TxnRequest txn;
    rpc::PutRequest& put = *txn.add_success()->mutable_request_put();
    put.set_key(key);
    put.set_value(value);
    put.set_lease(lease);
    REQUIRE(member.ask(method::txn, txn).status == 0);
}

void erase(FakeMember& member, const std::string& key) {
    rpc::TxnRequest txn;
    txn.add_success()->mutable_request_delete_range()->set_key(key);
    REQUIRE(member.ask(method::txn, txn).status == 0);
}

/// Changes what a member answers to a path.
template <class Message, class Change>
void change(FakeMember& member, std::string_view path, Change change) {
    member.instead([&member, path, change](std::string_view asked,
                                           const std::string& message) -> std::optional<Reply> {
        if (asked != path) return std::nullopt;
        Reply reply = member.ask(path, message);
        Message answer;
        REQUIRE(answer.ParseFromString(reply.body));
        change(answer);
        reply.body = answer.SerializeAsString();
        return reply;
    });
}

}  // namespace

TEST_CASE("a lease: no member's word makes it longer than what was asked for") {
    const auto cluster = std::make_shared<FakeCluster>();
    FakeMember member(cluster);
    for (const std::int64_t ttl : {std::int64_t{12}, std::numeric_limits<std::int64_t>::max()}) {
        INFO(ttl);
        change<rpc::LeaseGrantResponse>(member, method::lease_grant, [ttl](auto& answer) {
            REQUIRE(answer.ttl() == 3);
            answer.set_ttl(ttl);
        });
        const auto client = client_of("etcd://" + member.host() + "?ttl=2500ms");
        const auto before = hf::boot_clock::now();
        auto lease = client.make_lock("it").value()->acquire();
        REQUIRE(lease.has_value());
        CHECK(lease->valid_until() > before + 2s);
        CHECK(lease->valid_until() < hf::boot_clock::now() + 3s);
        REQUIRE(lease->renew().has_value());
        CHECK(lease->valid_until() < hf::boot_clock::now() + 3s);
        CHECK(lease->release() == hf::ReleaseResult::released);
    }
}

TEST_CASE("a grant that is answered too late is asked for again, and the call goes on") {
    const auto cluster = std::make_shared<FakeCluster>();
    FakeMember member(cluster);
    const bool key_ends = GENERATE(false, true);
    INFO("its key ends meanwhile: " << key_ends);
    std::atomic<unsigned> transactions{0};
    member.delay(method::txn, 1300ms);
    member.instead([&](std::string_view path, const std::string& asked) -> std::optional<Reply> {
        if (path != method::txn) return std::nullopt;
        const unsigned number = ++transactions;
        if (number == 2) {
            member.delay(method::txn, 0ms);
            if (key_ends) {
                const std::lock_guard hold(cluster->mutex);
                cluster->store.end(cluster->store.keys.begin()->second.lease);
            }
        }
        return number == 1 ? std::optional(member.ask(path, asked)) : std::nullopt;
    });
    const auto client = client_of("etcd://" + member.host() + "?ttl=1s&request_timeout=2s");
    Waiter waiter(client);
    lab::wait_until([&] { return waiter.granted(); }, 10s, "the late grant is followed by another");
    CHECK(waiter.state->lease.release() == hf::ReleaseResult::released);
    CHECK(keys_at(*cluster, "/holdfast/it/") == 0);
}

TEST_CASE("a store that began anew is listed and watched anew, and the free lock is granted") {
    const auto cluster = std::make_shared<FakeCluster>();
    FakeMember member(cluster);
    const bool other_id = GENERATE(false, true);
    INFO("the cluster has another identity: " << other_id);
    put(member, "/holdfast/it/other", "", 0);
    for (int i = 0; i < 50; ++i)
        put(member, "/else", std::to_string(i), 0);
    member.watch(other_id ? FakeMember::Watch::silent : FakeMember::Watch::refused);
    const auto client = client_of("etcd://" + member.host() + "?ttl=2s");
    Waiter waiter(client);
    lab::wait_until([&] { return keys_at(*cluster, "/holdfast/it/") == 2; }, 5s, "it waits");
    const auto watches = member.requests(method::watch);
    {
        const std::lock_guard hold(cluster->mutex);
        cluster->store = {};
        cluster->store.revision = other_id ? 1000 : 1;
        if (other_id) cluster->id = 18;
    }
    lab::wait_until([&] { return waiter.granted(); }, 15s, "the waiter is granted");
    Waiter next(client);  // the first may have been granted without having to watch again
    lab::wait_until([&] { return member.requests(method::watch) > watches; }, 5s,
                    "it watches anew");
    CHECK(waiter.state->lease.release() == hf::ReleaseResult::released);
    lab::wait_until([&] { return next.granted(); }, 15s, "the next one is granted");
    CHECK(next.state->lease.release() == hf::ReleaseResult::released);
}

TEST_CASE("hosts of two clusters in one URL are refused, whichever was asked first") {
    const auto one = std::make_shared<FakeCluster>(), two = std::make_shared<FakeCluster>();
    two->id = 18;
    FakeMember first(one), second(two);
    const auto client =
        client_of("etcd://" + first.host() + "," + second.host() + "?request_timeout=600ms");
    {
        auto lease = client.make_lock("it").value()->acquire({.wait = 5s});
        REQUIRE(lease.has_value());
        CHECK(lease->release() == hf::ReleaseResult::released);
    }
    first.hang(true);
    lab::wait_until(
        [&] { return second.requests(method::lease_grant) != 0 || refused(client).why; }, 5s,
        "the second host is asked");
    lab::wait_until([&] { return refused(client).why == errc::bad_config; }, 10s, "a refusal");
    CHECK(keys_at(*two, "/holdfast/it/") == 0);
    first.hang(false);
    lab::wait_until(
        [&] {
            auto lease = client.make_lock("it").value()->acquire({.wait = 1s});
            return lease && lease->release() == hf::ReleaseResult::released;
        },
        10s, "the first cluster serves again");
}

TEST_CASE("more hosts than the cluster has members: each says at once that it is the same one") {
    const auto one = std::make_shared<FakeCluster>(), two = std::make_shared<FakeCluster>();
    one->members = two->members = 1;
    two->id = 18;
    FakeMember first(one), second(two);
    const auto url = [](const std::string& a, const std::string& b) {
        return "etcd://" + a + "," + b + "?request_timeout=600ms";
    };
    // Whichever of the two clusters a fresh client asks.
    CHECK(refused(client_of(url(first.host(), second.host()))).why == errc::bad_config);
    CHECK(refused(client_of(url(second.host(), first.host()))).why == errc::bad_config);
    // Silence says nothing.
    second.hang(true);
    const auto silent = refused(client_of(url(first.host(), second.host())));
    CHECK(silent.why == errc::unavailable);
    CHECK_THAT(silent.words,
               ContainsSubstring("more hosts are named than the cluster has members"));
    CHECK(first.requests(method::lease_grant) + second.requests(method::lease_grant) == 0);
    // Two names of one member.
    const std::string same = "localhost" + first.host().substr(first.host().find(':'));
    CHECK_FALSE(refused(client_of(url(first.host(), same))).why);
}

TEST_CASE("a member that answers as no etcd does is left for the next one") {
    const auto cluster = std::make_shared<FakeCluster>();
    FakeMember proxied(cluster), good(cluster);
    const auto reply = GENERATE(
        Reply{.http = "200", .type = "text/html"}, Reply{.http = "404", .type = "text/plain"},
        Reply{.http = "502", .type = "text/html"}, Reply{.http = "503", .type = ""},
        Reply{.body = "\xFF\xFF"}, Reply{.body = ""}, Reply{.status = 99, .words = "no member"});
    INFO(reply.http << reply.status << reply.body);
    proxied.instead([&](std::string_view path, const std::string&) {
        // It is asked first for what is the same everywhere.
        if (path == method::member_list) return std::optional<Reply>();
        return std::optional(reply);
    });
    const auto client =
        client_of("etcd://" + proxied.host() + "," + good.host() + "?request_timeout=2s");
    auto lease = client.make_lock("it").value()->acquire({.wait = 5s});
    REQUIRE(lease.has_value());
    CHECK(lease->renew().has_value());
    CHECK(lease->release() == hf::ReleaseResult::released);
    // In the middle of things: what is held is renewed at the other one.
    CHECK(proxied.requests(method::lease_grant) != 0);
}

TEST_CASE("a host that speaks another protocol is named, and the next one is asked") {
    const auto cluster = std::make_shared<FakeCluster>();
    FakeMember other(cluster), good(cluster);
    const std::string alert("\x15\x03\x01\0\x02\x02\x16", 7);  // of TLS
    const auto bytes = GENERATE_COPY(as<std::string>(), "HTTP/1.1 400 Bad Request\r\n\r\n",
                                     "SSH-2.0-x\r\n", alert);
    other.say(bytes);
    const auto tried = refused(client_of("etcd://" + other.host()));
    CHECK(tried.why == errc::not_supported);
    CHECK_THAT(tried.words, ContainsSubstring(other.host() + " does not speak gRPC") &&
                                ContainsSubstring("2380"));
    const auto client = client_of("etcd://" + other.host() + "," + good.host());
    CHECK_FALSE(refused(client, 5s).why);
}

TEST_CASE("a member that says that it goes has its calls answered, and the next are elsewhere") {
    const auto cluster = std::make_shared<FakeCluster>();
    FakeMember member(cluster);
    put(member, "/holdfast/it/other", "", 0);
    const auto client = client_of("etcd://" + member.host() + "?ttl=3s");
    Waiter waiter(client);
    lab::wait_until([&] { return member.requests(method::watch) != 0; }, 5s, "it watches");
    member.delay(method::txn, 300ms);
    std::atomic<bool> over{false};
    hf::Lease held;
    client.make_lock("two").value()->async_acquire({.wait = 5s},
                                                   [&](hf::error_code ec, hf::Lease l) {
                                                       CHECK_FALSE(ec);
                                                       held = std::move(l);
                                                       over = true;
                                                   });
    const auto asked = member.requests(method::txn), connections = member.connections();
    lab::wait_until([&] { return over || member.requests(method::txn) != asked; }, 5s, "it asks");
    member.leave(true);
    lab::wait_until([&] { return over.load(); }, 5s, "it is answered");
    CHECK(held.release() == hf::ReleaseResult::released);
    CHECK(member.connections() > connections);
    erase(member, "/holdfast/it/other");
    lab::wait_until([&] { return waiter.granted(); }, 10s, "the waiter is granted");
}

TEST_CASE("a call that no member looked at is made again, and leaves no doubt") {
    const auto cluster = std::make_shared<FakeCluster>();
    FakeMember member(cluster);
    Bare bare(member.host(), "robust=no");
    hf::spi::Held held = bare.grant("first.h.1");
    std::vector<hf::spi::Held*> one{&held};
    member.refuse_calls(1);
    bare.run([&] { return bare.backend.release(one); });
    CHECK(held.released == hf::ReleaseResult::released);
    // One whose connection ends without a word is made again, too, and may have been done before.
    hf::spi::Held next = bare.grant("second.h.2");
    one = {&next};
    std::atomic<unsigned> calls{0};
    member.instead([&](std::string_view path, const std::string& asked) -> std::optional<Reply> {
        if (path != method::txn || ++calls != 1) return std::nullopt;
        auto done = member.ask(path, asked);
        member.leave(false);
        return done;
    });
    member.delay(method::txn, 100ms);
    bare.run([&] { return bare.backend.release(one); });
    CHECK(calls == 2);
    CHECK(next.released == hf::ReleaseResult::unreachable);  // the first may have done it
}

TEST_CASE("several hosts that all take longer than a share of the time-out serve the lock") {
    const auto cluster = std::make_shared<FakeCluster>();
    FakeMember a(cluster), b(cluster), c(cluster);
    for (FakeMember* m : {&a, &b, &c})
        m->delay(method::lease_grant, 350ms);
    const auto client = client_of("etcd://" + a.host() + "," + b.host() + "," + c.host() +
                                  "?ttl=6s&request_timeout=900ms");
    // The share is found out once, and holds for later connections.
    lab::wait_until(
        [&] {
            auto lease = client.make_lock("first").value()->acquire({.wait = 5s});
            return lease.has_value();
        },
        10s, "a first grant");
    std::vector<hf::Lease> held;
    for (int i = 0; i < 4; ++i) {
        auto lease = client.make_lock("n" + std::to_string(i)).value()->acquire({.wait = 2s});
        REQUIRE(lease.has_value());
        held.push_back(std::move(*lease));
    }
    const auto renewals = client.stats().renewals;
    lab::wait_until([&] { return client.stats().renewals >= renewals + 4; }, 8s, "renewals");
    for (hf::Lease& l : held)
        CHECK(l.valid());
}

TEST_CASE("a lost lease that is still there does not keep its client's waiter from looking") {
    const auto cluster = std::make_shared<FakeCluster>();
    FakeMember member(cluster);
    member.watch(FakeMember::Watch::refused);
    put(member, "/holdfast/it/other", "", 0);
    const auto client = client_of("etcd://" + member.host() + "?ttl=1500ms");
    Waiter holder(client);
    lab::wait_until([&] { return keys_at(*cluster, "/holdfast/it/") == 2; }, 5s, "it waits");
    erase(member, "/holdfast/it/other");
    lab::wait_until([&] { return holder.granted(); }, 5s, "the first one holds");
    Waiter next(client);
    lab::wait_until([&] { return keys_at(*cluster, "/holdfast/it/") == 2; }, 5s, "the next waits");
    {
        const std::lock_guard hold(cluster->mutex);
        const auto first = cluster->store.keys.lower_bound("/holdfast/it/");
        const auto second = std::next(first);
        const std::string key =
            first->second.created < second->second.created ? first->first : second->first;
        cluster->store.keys.erase(key);
        ++cluster->store.revision;
    }
    lab::wait_until([&] { return next.granted(); }, 8s, "the next one is granted");
    CHECK_FALSE(holder.state->lease.valid());
}

TEST_CASE("a member that is left takes the watch along") {
    const auto cluster = std::make_shared<FakeCluster>();
    FakeMember first(cluster), second(cluster);
    put(first, "/holdfast/it/other", "", 0);
    const auto client =
        client_of("etcd://" + first.host() + "," + second.host() + "?ttl=3s&request_timeout=600ms");
    Waiter waiter(client);
    lab::wait_until([&] { return first.requests(method::watch) != 0; }, 5s, "it watches the first");
    first.hang(true);
    lab::wait_until([&] { return second.requests(method::watch) != 0; }, 15s,
                    "it watches the second");
}

TEST_CASE("where one host is named, a connection that is cut off takes the watch along") {
    const auto cluster = std::make_shared<FakeCluster>();
    FakeMember member(cluster);
    put(member, "/holdfast/it/other", "", 0);
    const auto client = client_of("etcd://" + member.host() + "?ttl=3s&request_timeout=600ms");
    Waiter waiter(client);
    lab::wait_until([&] { return member.requests(method::watch) != 0; }, 5s, "it watches");
    member.hang(true);
    lab::wait_until([&] { return member.requests(method::watch) > 1; }, 15s, "it watches again");
    CHECK(member.connections() > 1);
}

TEST_CASE("a watch that ends at once is begun again with pauses") {
    const auto cluster = std::make_shared<FakeCluster>();
    FakeMember member(cluster);
    member.watch(FakeMember::Watch::ends);
    put(member, "/holdfast/it/other", "", 0);
    const auto client = client_of("etcd://" + member.host() + "?ttl=3s");
    CHECK(refused(client, 1500ms).why == errc::timed_out);
    CHECK(member.requests(method::watch) > 2);
    CHECK(member.requests(method::watch) < 12);
}

TEST_CASE("an answer that is too long is refused, and a long list is read") {
    const auto cluster = std::make_shared<FakeCluster>();
    FakeMember member(cluster);
    std::atomic<std::size_t> size{0};
    member.instead([&](std::string_view path, const std::string& asked) -> std::optional<Reply> {
        if (path == method::txn) return std::nullopt;
        auto reply = member.ask(path, asked);
        // A field that nobody knows.
        rpc::KeyValue longer;
        longer.set_value(std::string(size, 'x'));
        rpc::WatchResponse unknown;
        *unknown.add_events()->mutable_kv() = longer;
        reply.body += unknown.SerializeAsString();
        return reply;
    });
    const std::string url = "etcd://" + member.host() + "?ttl=20s&request_timeout=5s";
    const auto client = client_of(url);
    size = 500'000;
    CHECK(client.make_lock("it").value()->acquire({.wait = 5s}).has_value());
    size = 3'000'000;
    const auto tried = refused(client_of(url));
    CHECK(tried.why == errc::unavailable);
    CHECK_THAT(tried.words, ContainsSubstring("1 MiB"));
    CHECK(client.list("").has_value());
    size = 9'000'000;
    CHECK(client.list("").error() == errc::unavailable);
}

TEST_CASE("a server that repeats a password or a token is not quoted") {
    const auto cluster = std::make_shared<FakeCluster>();
    FakeMember member(cluster);
    const std::string repeated = GENERATE(as<std::string>(), "pass-word-1", "to-ken-1");
    rpc::AuthenticateResponse token;
    token.mutable_header();
    token.set_token("to-ken-1");
    member.instead([&](std::string_view path, const std::string&) {
        if (path == method::authenticate)
            return std::optional(Reply{.body = token.SerializeAsString()});
        return std::optional(FakeMember::refusal(3, "you said " + repeated + ", no"));
    });
    const auto tried = refused(client_of("etcd://app:pass-word-1@" + member.host()));
    CHECK(tried.why);
    CHECK_THAT(tried.words, !ContainsSubstring(repeated));
    CHECK_THAT(tried.words, ContainsSubstring("secret"));
}

TEST_CASE("a port of something else that speaks HTTP/2 is named as such") {
    const auto cluster = std::make_shared<FakeCluster>();
    FakeMember member(cluster);
    member.instead([&](std::string_view, const std::string&) {
        return std::optional(Reply{.http = "404", .type = "text/plain"});
    });
    const auto tried = refused(client_of("etcd://" + member.host()));
    CHECK(tried.why == errc::not_supported);
    CHECK_THAT(tried.words, ContainsSubstring("does not speak gRPC: HTTP status 404") &&
                                ContainsSubstring("2380"));
}

TEST_CASE("a grant that was done and refused for lack of space is given back") {
    const auto cluster = std::make_shared<FakeCluster>();
    FakeMember member(cluster);
    std::atomic<bool> full{true};
    member.instead([&](std::string_view path, const std::string& asked) -> std::optional<Reply> {
        if (path != method::txn || !full) return std::nullopt;
        rpc::TxnRequest txn;
        REQUIRE(txn.ParseFromString(asked));
        if (txn.failure().empty()) return std::nullopt;  // deletions only
        member.ask(path, asked);
        return FakeMember::refusal(8, "etcdserver: mvcc: database space exceeded");
    });
    const auto client = client_of("etcd://" + member.host() + "?request_timeout=1s");
    const auto tried = refused(client);
    CHECK(tried.why == errc::unavailable);
    CHECK_THAT(tried.words, ContainsSubstring("space"));
    lab::wait_until([&] { return keys_at(*cluster, "/holdfast/it/") == 0; }, 5s, "it is deleted");
}

TEST_CASE("another client's holder is shown with its value, and without a time if it has none") {
    const auto cluster = std::make_shared<FakeCluster>();
    FakeMember member(cluster);
    put(member, "/holdfast/it/694d77aa9e38260f", "10.0.0.1:80", 0);
    const auto found = client_of("etcd://" + member.host()).inspect("it");
    REQUIRE(found.has_value());
    REQUIRE(found->holders.size() == 1);
    CHECK_FALSE(found->holders.front().ttl_left.has_value());
    CHECK(found->holders.front().note == "10.0.0.1:80");
    CHECK(found->holders.front().foreign);
    CHECK(member.requests(method::lease_time_to_live) == 0);
}

TEST_CASE("marks: two holders of one name release in one call, and a revoked one has crashed") {
    const auto cluster = std::make_shared<FakeCluster>();
    FakeMember member(cluster);
    Bare bare(member.host(), "robust=yes");
    const std::string line = "/holdfast/it/";
    hf::spi::Held first = bare.grant("first.h.1");
    erase(member, line + "first.h.1");  // its lease has ended
    hf::spi::Held second = bare.grant("second.h.2");
    std::vector<hf::spi::Held*> both{&first, &second};
    bare.run([&] { return bare.backend.release(both); });
    CHECK(first.released == hf::ReleaseResult::already_expired);
    CHECK(second.released == hf::ReleaseResult::released);
    CHECK_FALSE(second.release_error);

    hf::spi::Held third = bare.grant("third.h.3");
    put(member, line + "third.h.3", "hf1! third.h.3", 0);
    std::vector<hf::spi::Held*> one{&third};
    bare.run([&] { return bare.backend.renew(one); });
    CHECK(third.renewal == hf::spi::Held::Renewal::lost);
    CHECK(third.renewal_error == errc::revoked);
    bare.run([&] { return bare.backend.release(one); });
    CHECK(third.released == hf::ReleaseResult::owned_by_other);
    const auto next = hf::Client::open("etcd://" + member.host() + "?robust=yes")
                          .value()
                          .make_lock("it")
                          .value()
                          ->acquire();
    REQUIRE(next.has_value());
    CHECK(next->previous_holder() == hf::PreviousHolder::crashed);
}

TEST_CASE("marks: a name is granted whose holders have crashed in any number") {
    // In the order of keys before theirs, and after them.
    const std::string_view first = GENERATE(as<std::string_view>(), "0.h.1", "z.h.1");
    const auto cluster = std::make_shared<FakeCluster>();
    FakeMember member(cluster);
    Bare bare(member.host(), "robust=yes");
    // More than an answer may have.
    constexpr int many = 10'000;
    for (int i = 0; i < many; ++i)
        put(member, "/holdfast/%mark/it/" + std::to_string(i) + std::string(100, 'x'), "", 0);
    const auto previous = [&](std::string_view owner) {
        hf::spi::Attempt a = holdfast::test::attempt_at("it", owner);
        std::vector<hf::spi::Attempt*> all{&a};
        bare.run([&] { return bare.backend.attempt(all); });
        INFO(a.detail);
        REQUIRE(std::holds_alternative<hf::spi::Attempt::Granted>(a.outcome));
        hf::spi::Held held = holdfast::test::held_of(a);
        std::vector<hf::spi::Held*> one{&held};
        bare.run([&] { return bare.backend.release(one); });
        CHECK(held.released == hf::ReleaseResult::released);
        return std::get<hf::spi::Attempt::Granted>(a.outcome).previous;
    };
    CHECK(previous(first) == hf::PreviousHolder::crashed);
    CHECK(keys_at(*cluster, "/holdfast/%mark/it/") == 1);
    CHECK(previous("next.h.2") == hf::PreviousHolder::released);
}

TEST_CASE("a renewal and a release say what the server said, and a deleted key is lost at once") {
    const auto cluster = std::make_shared<FakeCluster>();
    FakeMember member(cluster);
    Bare bare(member.host(), "robust=no");
    hf::spi::Held held = bare.grant("first.h.1");
    std::vector<hf::spi::Held*> one{&held};
    member.instead([](std::string_view path, const std::string&) -> std::optional<Reply> {
        if (path != method::txn) return std::nullopt;
        return FakeMember::refusal(7, "etcdserver: permission denied");
    });
    bare.run([&] { return bare.backend.renew(one); });
    CHECK(held.renewal == hf::spi::Held::Renewal::unknown);
    CHECK(held.renewal_error == errc::denied);
    CHECK(held.detail == "etcdserver: permission denied");
    held.detail.clear();
    bare.run([&] { return bare.backend.release(one); });
    CHECK(held.released == hf::ReleaseResult::unreachable);
    CHECK(held.release_error == errc::denied);
    CHECK(held.detail == "etcdserver: permission denied");
    member.instead(nullptr);
    erase(member, "/holdfast/it/first.h.1");
    bare.run([&] { return bare.backend.renew(one); });
    CHECK(held.renewal == hf::spi::Held::Renewal::lost);
    CHECK(held.renewal_error == errc::lost);
    CHECK_THAT(held.detail, ContainsSubstring("key"));
}
