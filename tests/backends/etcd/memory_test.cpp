// Out of memory in the middle of a request: what was under way ends, and the next one is answered.
#include <google/protobuf/message_lite.h>
#include <holdfast/lab/wait_until.hpp>

#include <new>

#include "bare.hpp"
#include "fake_member.hpp"

namespace etcd_memory {

using namespace holdfast::etcd;
using namespace holdfast::test;
using namespace std::chrono_literals;
using google::protobuf::MessageLite;
using holdfast::boot_clock;
using holdfast::error_code;

namespace {

/// A message that there is no memory for.
class NoMemory final : public MessageLite {
public:
    std::string GetTypeName() const override { return "NoMemory"; }
    MessageLite* New(google::protobuf::Arena*) const override { return nullptr; }
    void Clear() override {}
    bool IsInitialized() const override { return true; }
    void CheckTypeAndMergeFrom(const MessageLite&) override {}
    std::size_t ByteSizeLong() const override { throw std::bad_alloc(); }
    int GetCachedSize() const override { return 0; }
    std::uint8_t* _InternalSerialize(std::uint8_t* to,
                                     google::protobuf::io::EpsCopyOutputStream*) const override {
        return to;
    }
};

/// Requests to one member, without the rest of the backend.
struct Caller {
    explicit Caller(const FakeMember& member)
        : shared(std::make_shared<Shared>(settings_of("etcd://" + member.host()),
                                          holdfast::spi::Context{context.get_executor(), events})),
          members(std::make_shared<Members>(shared)) {}

    /// Asks for a lease. False: it was thrown out of.
    bool post(const MessageLite& request) {
        bool done = false, thrown = false;
        boost::asio::co_spawn(
            context, members->post(method::lease_grant, request, reply, boot_clock::now() + 2s),
            [&](const std::exception_ptr& e, const Members::Answer& a) {
                thrown = e != nullptr;
                why = a.why;
                done = true;
            });
        until(done);
        return !thrown;
    }
    void until(const bool& done) {
        REQUIRE(holdfast::lab::reached(
            [&] {
                context.restart();
                context.run_for(1ms);
                return done;
            },
            10s));
    }

    boost::asio::io_context context;
    NoEvents events;
    std::shared_ptr<Shared> shared;
    std::shared_ptr<Members> members;
    rpc::LeaseGrantResponse reply;
    error_code why;
};

rpc::LeaseGrantRequest ten_seconds() {
    rpc::LeaseGrantRequest request;
    request.set_ttl(10);
    return request;
}

}  // namespace

TEST_CASE("memory: what was thrown out of the request for a lease keeps no later one waiting") {
    const auto cluster = std::make_shared<FakeCluster>();
    FakeMember member(cluster);
    member.instead([](std::string_view path, const std::string&) {
        return path == method::authenticate ? std::optional(FakeMember::refusal(
                                                  9, "etcdserver: authentication is not enabled"))
                                            : std::nullopt;
    });
    Bare bare("app:pass-word-1@" + member.host(), "robust=no");
    holdfast::spi::Attempt a = attempt_at("it", "first.h.1");
    std::vector<holdfast::spi::Attempt*> all{&a};
    bare.events.no_memory = true;
    bare.run([&] { return bare.backend.attempt(all); });
    CHECK_FALSE(std::holds_alternative<holdfast::spi::Attempt::Granted>(a.outcome));
    bare.events.no_memory = false;
    bare.grant("second.h.2");
}

TEST_CASE("memory: a request that is thrown out of gives its turn to the next one") {
    const auto cluster = std::make_shared<FakeCluster>();
    FakeMember member(cluster);
    Caller caller(member);
    for (int i = 0; i < 40; ++i)  // more than may be under way
        REQUIRE_FALSE(caller.post(NoMemory()));
    REQUIRE(caller.post(ten_seconds()));
    CHECK_FALSE(caller.why);
    CHECK(caller.reply.ttl() == 10);
    CHECK(member.connections() == 1);
}

TEST_CASE("memory: a connection that cannot take what comes ends, and another one serves") {
    const auto cluster = std::make_shared<FakeCluster>();
    FakeMember member(cluster);
    Caller caller(member);
    const auto watcher = std::make_shared<Members::Watcher>(
        [](std::string_view) -> bool { throw std::bad_alloc(); });
    const rpc::WatchRequest all;
    bool done = false;
    boost::asio::co_spawn(
        caller.context, caller.members->follow(watcher, method::watch, all, boot_clock::now() + 5s),
        [&](const std::exception_ptr&, const error_code&) { done = true; });
    caller.until(done);
    CHECK(watcher->over());
    REQUIRE(caller.post(ten_seconds()));
    CHECK_FALSE(caller.why);
    CHECK(member.connections() == 2);
}

}  // namespace etcd_memory
