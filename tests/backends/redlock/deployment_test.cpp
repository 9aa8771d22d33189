// What belongs to the deployment: which nodes, one server once, max_ttl, credentials.
#include "five.hpp"
#include "holdfast/lab/process.hpp"
#include "holdfast/lab/temp_dir.hpp"
#include "holdfast/lab/tls_files.hpp"
#include "rig.hpp"

#include <algorithm>
#include <atomic>
#include <fstream>
#include <optional>

using namespace redlock_tests;

namespace {

/// The error of opening a URL, and its words.
hf::error_code bad(const std::string& url, std::string& words) {
    hf::Diagnostics said;
    hf::ClientOptions options;
    options.diagnostics = &said;
    const auto client = hf::Client::open(url, options);
    words = said.text();
    return client ? hf::error_code() : client.error();
}

}  // namespace

TEST_CASE("deployment: fewer than three nodes, a bad path, too long a ttl are refused",
          "[config]") {
    std::string words;
    CHECK(bad("redlock://a:1", words) == errc::bad_config);
    CHECK(words.find("at least three nodes") != words.npos);
    CHECK(words.find("redis://HOST:PORT") != words.npos);
    CHECK(bad("redlock://a:1,b:1", words) == errc::bad_config);
    CHECK(bad("redlock://a:1,b:1,a:1", words) == errc::bad_config);
    CHECK(words.find("given twice") != words.npos);
    CHECK(bad("redlock://a:1,b:1,c:1/x", words) == errc::bad_config);
    CHECK(bad("redlock://a:1,b:1,c:1?ttl=2m", words) == errc::bad_config);
    CHECK(words.find("max_ttl") != words.npos);
    CHECK(bad("redlock://a:1,b:1,c:1?tls_verify=no", words) == errc::bad_config);
    CHECK_FALSE(bad("redlock://a,b,c:7000/2?fencing=off&ttl=2m&max_ttl=5m", words));
    CHECK_FALSE(bad("redlock://[::1]:1,[::1]:2,c", words));
    INFO(words);
    Five five;
    const auto client = open(five.url("durable=yes&max_ttl=5s&ttl=1s"));
    std::string why;
    CHECK(refusal(*lock_of(client, "name", {.ttl = 6s}), &why) == errc::bad_config);
    CHECK(why.find("max_ttl = 5s") != why.npos);
    CHECK(five.holding("name") == 0);
}

TEST_CASE("deployment: two URLs of one server are refused", "[config]") {
    Five five({}, {}, 3);
    const auto port = std::to_string(five[0].port());
    for (const std::string query : {"durable=yes", "durable=yes&fencing=off"}) {
        const auto client =
            open("redlock://" + five.hosts() + ",localhost:" + port +
                 ",127.0.0.2:" + std::to_string(five[1].port()) + "?node_set=twice&" + query);
        const auto lock = lock_of(client, "name");
        // The first attempt may meet its majority before the others have introduced themselves.
        std::string words;
        lab::wait_until([&] { return refusal(*lock, &words) == errc::bad_config; }, 5s,
                        "it is found out");
        INFO(words);
        CHECK(words.find("127.0.0.1:" + port + " and localhost:" + port + " are one server") !=
              words.npos);
        CHECK(refusal(*lock) == errc::bad_config);
        lab::wait_until([&] { return five.holding("name") == 0; }, 5s, "nothing is held");
    }
}

TEST_CASE("deployment: clients of different sets of nodes are kept apart", "[config]") {
    Five five;
    const std::string three =
        "redlock://" + five.where(0) + "," + five.where(1) + "," + five.where(2);
    std::optional client = open(five.url());
    auto lease = hold(*lock_of(*client, "name"));
    const auto other = open(three + "?durable=yes");
    std::string words;
    CHECK(refusal(*lock_of(other, "elsewhere"), &words) == errc::bad_config);
    INFO(words);
    CHECK(words.find("is used with another set of nodes (") != words.npos);
    CHECK(words.find(five.where(4)) != words.npos);
    CHECK(words.find("{redlock}:hf:n") != words.npos);
    hf::Diagnostics said;
    CHECK(other.inspect("name", &said).error() == errc::bad_config);
    // The same nodes in another order are the same set; a name for it serves for other spellings.
    std::string turned = "redlock://";
    for (std::size_t i = 5; i-- > 0;)
        turned += five.where(i) + (i > 0 ? "," : "");
    CHECK(refusal(*lock_of(open(turned + "?durable=yes"), "name")) == errc::contended);
    CHECK(refusal(*lock_of(open(five.url("durable=yes&node_set=main")), "x")) == errc::bad_config);
    // Once the operator has stopped all clients, which would mark again where they connect again,
    // and taken the mark away, the nodes serve a new set, and no longer the old.
    lease.release();
    lease = {};
    client.reset();
    for (std::size_t i = 0; i < 5; ++i)
        five[i].cli({"DEL", "{redlock}:hf:n"});
    CHECK(hold(*lock_of(open(three + "?durable=yes"), "name"), 2s).valid());
    CHECK(refusal(*lock_of(open(five.url()), "name")) == errc::bad_config);
}

TEST_CASE("clients with another max_ttl or durable are kept apart", "[config]") {
    Five five(false, {}, 3);
    const auto client = open(five.url("durable=no&max_ttl=2s&ttl=1s"));
    hold(*lock_of(client, "name"), 20s).release();
    std::string words;
    CHECK(refusal(*lock_of(open(five.url("durable=no&max_ttl=1s&ttl=1s")), "x"), &words) ==
          errc::bad_config);
    INFO(words);
    CHECK(words.find("is used with max_ttl=2000ms durable=no, and here it is max_ttl=1000ms "
                     "durable=no. All clients of these nodes must use the same values") !=
          words.npos);
    CHECK(words.find("wait for the longer max_ttl, and delete the key {redlock}:hf:n on every "
                     "node") != words.npos);
    CHECK(refusal(*lock_of(open(five.url("durable=yes&max_ttl=2s&ttl=1s")), "x"), &words) ==
          errc::bad_config);
    CHECK(words.find("here it is max_ttl=2000ms durable=yes") != words.npos);
    CHECK(refusal(*lock_of(client, "name")) == hf::error_code());
}

TEST_CASE("nodes that an older or a newer library has marked say what to do", "[config]") {
    Five five(false, {}, 3);
    std::vector<std::string> hosts{five.where(0), five.where(1), five.where(2)};
    std::sort(hosts.begin(), hosts.end());
    const std::string set = hosts[0] + "," + hosts[1] + "," + hosts[2];
    // One node is enough: a majority of it and one more need not meet another one.
    for (const auto& mark : {"1:" + set, "3:" + set + " of the future"}) {
        five[1].cli({"SET", "{redlock}:hf:n", mark});
        const auto client = open(five.url());
        const auto lock = lock_of(client, "name");
        std::string words;
        lab::wait_until([&] { return refusal(*lock, &words) == errc::bad_config; }, 5s,
                        "it is found out");
        INFO(words);
        CHECK(words.find(five.where(1) + " is marked by another version of Holdfast") !=
              words.npos);
        CHECK(words.find("delete the key {redlock}:hf:n on every node") != words.npos);
        CHECK(five[1].cli({"GET", "{redlock}:hf:n"}).text == mark);
        lab::wait_until([&] { return five.holding("name") == 0; }, 5s, "nothing is held");
    }
    for (std::size_t i = 0; i < 3; ++i)
        five[i].cli({"DEL", "{redlock}:hf:n"});
    CHECK(hold(*lock_of(open(five.url()), "name")).valid());
    // What the older library compares: it refuses this one, and shows what follows the colon.
    const std::string mark = five[1].cli({"GET", "{redlock}:hf:n"}).text;
    CHECK(mark == "2:max_ttl=60000ms durable=yes " + set);
}

TEST_CASE("deployment: shared credentials, by URL, file and environment, never shown", "[config]") {
    RedisOptions options;
    options.password = "s3cret-of-all";
    options.users = {"app on >pw-of-app ~* &* +@all"};
    Five five(false, options);
    lab::TempDir dir;
    std::ofstream(dir / "password") << "s3cret-of-all\n";
    ::setenv("REDLOCK_TEST_PASSWORD", "pw-of-app", 1);
    const std::string tail = five.hosts() + "?durable=yes";
    CHECK(hold(*lock_of(open("redlock://:s3cret-of-all@" + tail), "a")).valid());
    CHECK(hold(*lock_of(open("redlock://app:pw-of-app@" + tail), "b")).valid());
    CHECK(hold(*lock_of(open("redlock://" + tail + "&password_file=" + (dir / "password").string()),
                        "c"))
              .valid());
    CHECK(hold(*lock_of(open("redlock://app@" + tail + "&password_env=REDLOCK_TEST_PASSWORD"), "d"))
              .valid());
    for (const bool async : {false, true}) {
        const auto client = open("redlock://:wr0ng-one@" + tail);
        const auto lock = lock_of(client, "e");
        std::string words;
        hf::error_code ec;
        if (async)
            ec = refusal(*lock, &words, 100ms);
        else
            ec = refusal(*lock, &words);
        INFO(words);
        CHECK(ec == errc::denied);
        CHECK(words.find("wrong user or password") != words.npos);
        CHECK(words.find("wr0ng") == words.npos);
        CHECK(client.url().find("wr0ng") == std::string::npos);
    }
    CHECK(refusal(*lock_of(open("redlock://" + tail), "f")) == errc::denied);
}

TEST_CASE("deployment: an even number of nodes and fencing=off are told", "[config]") {
    std::mutex mutex;
    std::string told;
    hf::ClientOptions options;
    options.events = [&](const hf::Event& e) {
        const std::lock_guard hold_it(mutex);
        if (e.kind == hf::Event::Kind::warning) told += e.text + "\n";
    };
    Five four(false, {}, 4);
    const auto client = open(four.url("durable=yes&fencing=off"), options);
    CHECK_FALSE(client.capabilities().has(hf::Capability::fencing));
    CHECK(client.capabilities().safety == hf::SafetyClass::c);
    auto lease = hold(*lock_of(client, "name"));
    CHECK_FALSE(lease.fencing_token());
    CHECK(lease.previous_holder() == hf::PreviousHolder::unknown);
    lab::wait_until(
        [&] {
            const std::lock_guard hold_it(mutex);
            return told.find("even number of nodes") != told.npos &&
                   told.find("fencing=off") != told.npos;
        },
        5s, "both warnings");
    // A majority of four is three.
    lease.release();
    lab::wait_until([&] { return four.holding("name") == 0; }, 5s, "free");
    four[0].pause();
    four[1].pause();
    CHECK(refusal(*lock_of(open(four.url("durable=yes&fencing=off")), "name")) == errc::no_quorum);
    four[0].resume();
    four[1].resume();
}

TEST_CASE("probe believes in a node only where nothing voids the sync of each write", "[config]") {
    Five three(true, {}, 3);
    redis_tests::Rig rig(three.url());
    const auto outlives = [&] {
        const auto found = rig.probe();
        REQUIRE(found.has_value());
        return found->has(hf::Capability::survives_server_crash);
    };
    CHECK(outlives());
    three[1].cli({"CONFIG", "SET", "no-appendfsync-on-rewrite", "yes"});
    CHECK_FALSE(outlives());
    REQUIRE_FALSE(rig.events.warnings.empty());
    INFO(rig.events.warnings.back());
    CHECK(rig.events.warnings.back().find(three.where(1)) == 0);
    CHECK(rig.events.warnings.back().find("no-appendfsync-on-rewrite") != std::string::npos);
    three[1].cli({"CONFIG", "SET", "no-appendfsync-on-rewrite", "no"});
    three[2].cli({"CONFIG", "SET", "appendfsync", "everysec"});
    CHECK_FALSE(outlives());
}

TEST_CASE("deployment: TLS, each node checked by its own name", "[config]") {
    RedisOptions options;
    options.tls = true;
    Five three(false, options, 3);
    // Each has an authority of its own here; one file vouches for all of them.
    lab::TempDir dir;
    std::ofstream bundle(dir / "ca.pem");
    for (std::size_t i = 0; i < 3; ++i)
        bundle << std::ifstream(three[i].ca_file()).rdbuf();
    bundle.close();
    const auto port = [&](std::size_t i) { return std::to_string(three[i].port()); };
    const std::string mixed = "redlocks://127.0.0.1:" + port(0) + ",localhost:" + port(1) +
                              ",127.0.0.1:" + port(2) + "?durable=yes&node_set=tls";
    const auto client = open(mixed + "&tls_ca_file=" + (dir / "ca.pem").string());
    auto lease = hold(*lock_of(client, "name"));
    lab::wait_until([&] { return three.holding("name") == 3; }, 5s, "all three have it");
    CHECK(lease.release() == hf::ReleaseResult::released);
    const auto strict = open(mixed);
    std::string words;
    CHECK(refusal(*lock_of(strict, "name"), &words) == errc::no_quorum);
    INFO(words);
    CHECK(words.find("certificate") != words.npos);
    const auto other =
        open(mixed + "&tls_server_name=other.example&tls_ca_file=" + (dir / "ca.pem").string());
    CHECK(refusal(*lock_of(other, "name"), &words) == errc::no_quorum);
    CHECK(words.find("not for the host other.example") != words.npos);
}

namespace {

/// The files of a client's URL, as copies that can be changed.
struct ClientFiles {
    lab::TempDir dir;
    void take(const lab::TlsFiles& from) const {
        const auto over = std::filesystem::copy_options::overwrite_existing;
        std::filesystem::copy_file(from.ca, dir / "ca", over);
        std::filesystem::copy_file(from.cert, dir / "cert", over);
        std::filesystem::copy_file(from.key, dir / "key", over);
    }
    std::string query() const {
        return "&tls_ca_file=" + (dir / "ca").string() +
               "&tls_cert_file=" + (dir / "cert").string() +
               "&tls_key_file=" + (dir / "key").string();
    }
};

}  // namespace

TEST_CASE("deployment: TLS files that change count from the next connection on", "[config]") {
    RedisOptions options;
    options.tls = true;
    Five three(false, options, 3);
    const auto serve = [&](const lab::TlsFiles& files) {
        for (std::size_t i = 0; i < 3; ++i) {
            REQUIRE(three[i]
                        .cli({"CONFIG", "SET", "tls-ca-cert-file", files.ca.string(),
                              "tls-cert-file", files.cert.string(), "tls-key-file",
                              files.key.string(), "tls-auth-clients", "yes"})
                        .is_ok());
            three[i].cli({"CLIENT", "KILL", "TYPE", "normal"});
        }
    };
    const lab::TempDir one, two;
    const auto first = lab::make_tls_files(one.path()), second = lab::make_tls_files(two.path());
    const ClientFiles files;
    files.take(first);
    serve(first);
    std::atomic<bool> warned{false};
    hf::ClientOptions watched;
    watched.events = [&](const hf::Event& e) {
        if (e.text.find("the one read before stays in use") != e.text.npos) warned = true;
    };
    const auto client =
        open("redlocks://" + three.hosts() + "?durable=yes&ttl=3s" + files.query(), watched);
    auto lease = hold(*lock_of(client, "name"));
    const auto renewed = [&](const char* what) {
        lab::wait_until([&] { return lease.renew().has_value(); }, 10s, what);
    };
    files.take(second);
    serve(second);
    renewed("renewed with the new files");
    // The middle of a rotation: what was read before counts on.
    std::ofstream(files.dir / "key") << "half";
    serve(second);
    renewed("renewed while the key is unusable");
    CHECK(lease.state() == hf::LeaseState::held);
    lab::wait_until([&] { return warned.load(); }, 10s, "warned of");
    CHECK(lock_of(client, "other")->acquire({.wait = 5s}).has_value());  // by a lane
    for (std::size_t i = 0; i < 3; ++i)
        CHECK(three[i].cli({"CLIENT", "LIST"}).text.find(" name=holdfast ") != std::string::npos);
}

TEST_CASE("deployment: an encrypted private key is refused, and no pass phrase is asked for",
          "[config]") {
    const lab::TempDir dir;
    const auto files = lab::make_tls_files(dir.path());
    lab::ProcessOptions openssl;
    openssl.argv = {"openssl",  "pkey",   "-in",  files.key.string(),          "-aes256",
                    "-passout", "pass:x", "-out", (dir / "encrypted").string()};
    openssl.log = dir / "log";
    CHECK(lab::Process(openssl).wait(10s)->code == 0);
    std::string words;
    CHECK(bad("redlocks://a,b,c?tls_cert_file=" + files.cert.string() +
                  "&tls_key_file=" + (dir / "encrypted").string(),
              words) == errc::bad_config);
    INFO(words);
    CHECK(words.find("it is encrypted") != std::string::npos);
}

TEST_CASE("deployment: two addresses of one server have one vote, also without the right to INFO",
          "[config]") {
    RedisOptions options;
    options.users = {"app on >pw ~* &* +@all -info"};
    Five two(false, options, 2);
    const lab::Proxy again(two[0].port());
    const auto client = open("redlock://app:pw@" + two.hosts() +
                             ",127.0.0.1:" + std::to_string(again.port()) + "?durable=yes");
    const auto lock = lock_of(client, "name", {.renew = false});
    for (const bool async : {false, true})
        acquire(*lock, async).release();
    two[1].kill();
    std::string words;
    CHECK(refusal(*lock, &words) == errc::no_quorum);
    INFO(words);
    CHECK(words.find("the same server") != words.npos);
    lab::wait_until([&] { return two.holding("name") == 0; }, 5s, "nothing is left");
}

TEST_CASE("deployment: the rights that the README names are enough", "[config]") {
    RedisOptions options;
    options.password = "of-the-default-user";
    options.users = {
        "app on >pw resetchannels resetkeys ~name ~{name}:hf:* ~{redlock}:hf:n -@all +evalsha "
        "+eval "
        "+set +get +del +pexpire +pexpireat +pttl +time +info +select +ping"};
    Five five(false, options);
    const auto client = open("redlock://app:pw@" + five.hosts() + "?durable=yes");
    const auto lock = lock_of(client, "name");
    for (int i = 0; i < 2; ++i) {
        auto lease = hold(*lock);
        CHECK(lease.renew().has_value());
        CHECK(holders_of(client, "name") == 1);
        CHECK(lease.release() == hf::ReleaseResult::released);
    }
    auto lease = hold(*lock);
    CHECK(client.break_lock("name", {.now = true}).has_value());
    CHECK_FALSE(lease.renew().has_value());
    std::string words;
    CHECK(refusal(*lock_of(client, "elsewhere"), &words) == errc::denied);
}

TEST_CASE("deployment: a user who may only read can inspect", "[config]") {
    RedisOptions options;
    options.users = {
        "reader on >word %R~* resetchannels -@all +eval_ro +get +pttl +time +info +select +ping"};
    Five three(false, options, 3);
    const auto client = open(three.url()),
               reader = open("redlock://reader:word@" + three.hosts() + "?durable=yes");
    const auto lease = hold(*lock_of(client, "name"));
    const auto seen = reader.inspect("name");
    REQUIRE(seen.has_value());
    CHECK(seen->holders.at(0).owner == lease.owner_id());
    for (std::size_t i = 0; i < 3; ++i)
        three[i].cli({"ACL", "SETUSER", "older", "on", ">word", "~*", "+@all", "-eval_ro"});
    const auto older = open("redlock://older:word@" + three.hosts() + "?durable=yes");
    CHECK(older.inspect("name").has_value());
}

TEST_CASE("deployment: what the network can read or fake is told for each node", "[config]") {
    const auto warned = [](const std::string& url) {
        const redis_tests::Rig rig(url);  // connects to nothing
        return rig.events.warnings;
    };
    CHECK(warned("redlock://:word@127.0.0.1,localhost,[::1]").empty());
    const auto clear = warned("redlock://:word@127.0.0.1,b.example,c.example");
    REQUIRE(clear.size() == 2);
    CHECK(clear[0].find("b.example") != std::string::npos);
    CHECK(clear[1].find("redlocks://") != std::string::npos);
    CHECK(clear[1].find("word@") == std::string::npos);
    CHECK(warned("redlocks://a.example,b.example,c.example?tls_verify=no").size() == 3);
}

TEST_CASE("deployment: the plain pattern of other clients, and Holdfast", "[interop]") {
    Five five;
    const auto client = open(five.url());
    const auto lock = lock_of(client, "name");
    auto lease = hold(*lock);
    lab::wait_until([&] { return five.holding("name") == 5; }, 10s, "all five have it");
    // Theirs: SET NX PX at every node, a majority, compare-and-delete where it failed.
    const std::string release =
        "if redis.call(\"get\",KEYS[1]) == ARGV[1] then return redis.call(\"del\",KEYS[1]) else "
        "return 0 end";
    const auto theirs = [&] {
        std::size_t got = 0;
        for (std::size_t i = 0; i < 5; ++i)
            got += five[i].cli({"SET", "name", "theirs", "NX", "PX", "10000"}).is_ok() ? 1 : 0;
        return got;
    };
    CHECK(theirs() == 0);
    for (std::size_t i = 0; i < 5; ++i)
        CHECK(five[i].cli({"GET", "name"}).text == lease.owner_id());
    lease.release();
    lab::wait_until([&] { return five.holding("name") == 0; }, 2s, "free");
    CHECK(theirs() == 5);
    CHECK(refusal(*lock) == errc::contended);
    const auto seen = client.inspect("name");
    REQUIRE(seen->holders.size() == 1);
    CHECK(seen->holders[0].foreign);
    for (std::size_t i = 0; i < 5; ++i)
        CHECK(five[i].cli({"EVAL", release, "1", "name", "theirs"}).integer == 1);
    CHECK(hold(*lock).valid());
}
