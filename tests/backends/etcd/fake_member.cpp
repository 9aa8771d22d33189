#include "fake_member.hpp"

#include <array>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <holdfast/lab/error.hpp>
#include <holdfast/lab/grpc_server.hpp>
#include <utility>

namespace holdfast::test {
namespace {

using boost::asio::ip::tcp;
constexpr int unimplemented = 12, unavailable = 14;
constexpr std::uint32_t refused_stream = 7;

}  // namespace

class FakeMember::Connection final : public lab::GrpcServer::Listener,
                                     public std::enable_shared_from_this<Connection> {
public:
    Connection(FakeMember& m, tcp::socket s) : member(m), socket(std::move(s)), http(*this) {}

    void read() {
        socket.async_read_some(
            boost::asio::buffer(in),
            [self = shared_from_this()](boost::system::error_code ec, std::size_t n) {
                if (ec) return;
                std::string says;
                {
                    const std::lock_guard hold(self->member.mutex_);
                    says = self->member.says_;
                }
                if (!says.empty()) return self->end_with(says);
                try {
                    self->receiving = true;
                    self->http.receive({self->in.data(), n});
                    self->receiving = false;
                } catch (const lab::LabError&) {
                    return self->end();
                }
                self->flush();
                self->read();
            });
    }
    void message(std::int32_t call, const lab::GrpcServer::Request& r, std::string m) override {
        member.serve(shared_from_this(), call, r.path, m);
    }
    void flush() {
        if (receiving) return;
        out += http.output();
        if (writing || out.empty()) return;
        writing = true;
        auto bytes = std::make_shared<std::string>(std::exchange(out, {}));
        boost::asio::async_write(
            socket, boost::asio::buffer(*bytes),
            [self = shared_from_this(), bytes](boost::system::error_code ec, std::size_t) {
                self->writing = false;
                if (!ec) self->flush();
            });
    }
    void end_with(const std::string& bytes) {
        boost::system::error_code ignored;
        boost::asio::write(socket, boost::asio::buffer(bytes), ignored);
        end();
    }
    void end() {
        boost::system::error_code ignored;
        socket.shutdown(tcp::socket::shutdown_both, ignored);
        socket.close(ignored);
    }

    FakeMember& member;
    tcp::socket socket;
    lab::GrpcServer http;
    std::array<char, 8192> in{};
    std::string out;
    bool receiving = false, writing = false;
};

FakeMember::FakeMember(std::shared_ptr<FakeCluster> c)
    : cluster_(std::move(c)),
      work_(context_.get_executor()),
      acceptor_(context_, tcp::endpoint(boost::asio::ip::make_address("127.0.0.1"), 0)),
      port_(acceptor_.local_endpoint().port()) {
    accept();
    thread_ = std::thread([this] { context_.run(); });
}

FakeMember::~FakeMember() {
    context_.stop();
    thread_.join();
}

void FakeMember::instead(Instead i) {
    const std::lock_guard hold(mutex_);
    instead_ = std::move(i);
}

void FakeMember::delay(std::string_view path, std::chrono::milliseconds time) {
    const std::lock_guard hold(mutex_);
    delays_[std::string(path)] = time;
}

void FakeMember::hang(bool on) {
    const std::lock_guard hold(mutex_);
    hangs_ = on;
    if (on) return;
    boost::asio::post(context_, [this] {
        for (const auto& answers : std::exchange(held_back_, {}))
            answers();
    });
}

void FakeMember::say(std::string bytes) {
    const std::lock_guard hold(mutex_);
    says_ = std::move(bytes);
}

void FakeMember::leave(bool says_so) {
    boost::asio::post(context_, [this, says_so] {
        for (const auto& weak : all_)
            if (const auto c = weak.lock()) {
                if (!says_so) {
                    c->end();
                    continue;
                }
                c->http.go_away();
                c->flush();
            }
    });
}

void FakeMember::refuse_calls(std::size_t n) {
    const std::lock_guard hold(mutex_);
    refused_calls_ = n;
}

void FakeMember::watch(Watch w) {
    const std::lock_guard hold(mutex_);
    watch_ = w;
}

std::size_t FakeMember::requests(std::string_view path) const {
    const std::lock_guard hold(mutex_);
    const auto at = requests_.find(path);
    return at == requests_.end() ? 0 : at->second;
}

std::size_t FakeMember::connections() const {
    const std::lock_guard hold(mutex_);
    return connections_;
}

FakeMember::Reply FakeMember::ask(std::string_view path, const std::string& message) {
    const std::lock_guard hold(cluster_->mutex);
    sim::EtcdStore& store = cluster_->store;
    const auto done = [&](auto request, auto execute) {
        if (!request.ParseFromString(message)) return refusal(unimplemented, "no message");
        auto out = execute(request);
        out.mutable_header()->set_cluster_id(cluster_->id);
        return Reply{0, {}, out.SerializeAsString()};
    };
    try {
        if (path == method::txn)
            return done(rpc::TxnRequest(), [&](const auto& r) { return store.transaction(r); });
        if (path == method::range)
            return done(rpc::RangeRequest(), [&](const auto& r) { return store.range(r); });
        if (path == method::lease_grant)
            return done(rpc::LeaseGrantRequest(), [&](const auto& r) { return store.grant(r); });
        if (path == method::lease_keep_alive)
            return done(rpc::LeaseKeepAliveRequest(),
                        [&](const auto& r) { return store.keep_alive(r); });
        if (path == method::lease_revoke)
            return done(rpc::LeaseRevokeRequest(), [&](const auto& r) { return store.revoke(r); });
        if (path == method::lease_time_to_live)
            return done(rpc::LeaseTimeToLiveRequest(),
                        [&](const auto& r) { return store.time_to_live(r, 5); });
        if (path == method::member_list)
            return done(rpc::MemberListRequest(), [&](const auto&) {
                rpc::MemberListResponse out;
                for (std::size_t i = 0; i < cluster_->members; ++i)
                    out.add_members();
                return out;
            });
    } catch (const sim::EtcdError& e) {
        return refusal(e.code, e.what());
    }
    return refusal(unimplemented, "unknown service");
}

void FakeMember::accept() {
    acceptor_.async_accept([this](boost::system::error_code ec, tcp::socket socket) {
        if (ec) return;
        const auto c = std::make_shared<Connection>(*this, std::move(socket));
        all_.push_back(c);
        {
            const std::lock_guard hold(mutex_);
            ++connections_;
        }
        c->read();
        accept();
    });
}

void FakeMember::serve(const std::shared_ptr<Connection>& c, std::int32_t call,
                       std::string_view path, const std::string& message) {
    Instead instead;
    Watch watch{};
    std::chrono::milliseconds later{0};
    {
        const std::lock_guard hold(mutex_);
        ++requests_[std::string(path)];
        instead = instead_;
        watch = watch_;
        if (const auto at = delays_.find(path); at != delays_.end()) later = at->second;
        if (refused_calls_ != 0) {
            --refused_calls_;
            return c->http.reset(call, refused_stream);
        }
    }
    std::optional<Reply> reply;
    if (instead) reply = instead(path, message);
    if (!reply && path == method::watch) {
        if (watch == Watch::refused) return c->http.finish(call, unavailable, "no watch");
        rpc::WatchResponse created;
        created.set_created(true);
        c->http.send(call, created.SerializeAsString());
        if (watch == Watch::ends) c->http.finish(call);
        return;
    }
    if (!reply) reply = ask(path, message);
    if (later.count() == 0) return answer(c, call, *reply);
    const auto timer = std::make_shared<boost::asio::steady_timer>(context_, later);
    timer->async_wait(
        [this, timer, c, call, r = *reply](boost::system::error_code) { answer(c, call, r); });
}

void FakeMember::answer(const std::shared_ptr<Connection>& c, std::int32_t call, const Reply& r) {
    {
        const std::lock_guard hold(mutex_);
        if (hangs_) {
            held_back_.emplace_back([this, c, call, r] { answer(c, call, r); });
            return;
        }
    }
    if (!r.http.empty()) {
        c->http.foreign(call, r.http, r.type);
    } else {
        if (r.status == 0) c->http.send(call, r.body);
        c->http.finish(call, r.status, r.words);
    }
    c->flush();
}

}  // namespace holdfast::test
