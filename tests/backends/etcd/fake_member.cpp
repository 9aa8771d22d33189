#include "fake_member.hpp"

#include <sys/socket.h>

#include <boost/asio/buffers_iterator.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/streambuf.hpp>
#include <boost/asio/write.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <utility>

namespace holdfast::test {
namespace {

namespace js = boost::json;
using boost::asio::ip::tcp;

constexpr int not_found = 5;

std::string http(const FakeMember::Reply& r) {
    return "HTTP/1.1 " + std::to_string(r.status) + " X\r\nContent-Type: " + r.type +
           "\r\nContent-Length: " + std::to_string(r.body.size()) + "\r\n\r\n" + r.body;
}

}  // namespace

FakeMember::FakeMember(std::shared_ptr<FakeCluster> c)
    : cluster_(std::move(c)),
      acceptor_(context_, tcp::endpoint(boost::asio::ip::make_address("127.0.0.1"), 0)),
      port_(acceptor_.local_endpoint().port()),
      accepting_([this] { accept(); }) {}

FakeMember::~FakeMember() {
    {
        const std::lock_guard hold(mutex_);
        ended_ = true;
        for (const auto& s : sockets_)
            ::shutdown(s->native_handle(), SHUT_RDWR);
    }
    changed_.notify_all();
    ::shutdown(acceptor_.native_handle(), SHUT_RDWR);  // ends accept()
    accepting_.join();
    for (std::thread& t : threads_)
        t.join();
}

void FakeMember::instead(Instead i) {
    const std::lock_guard hold(mutex_);
    instead_ = std::move(i);
}

void FakeMember::delay(const std::string& path, std::chrono::milliseconds time) {
    const std::lock_guard hold(mutex_);
    delays_[path] = time;
}

void FakeMember::hang(bool on) {
    {
        const std::lock_guard hold(mutex_);
        hangs_ = on;
    }
    changed_.notify_all();
}

void FakeMember::watch(Watch w) {
    const std::lock_guard hold(mutex_);
    watch_ = w;
}

std::size_t FakeMember::requests(const std::string& path) const {
    const std::lock_guard hold(mutex_);
    const auto at = requests_.find(path);
    return at == requests_.end() ? 0 : at->second;
}

FakeMember::Reply FakeMember::refusal(int grpc_code, const std::string& words) {
    js::object out;
    out["error"] = out["message"] = words;
    out["code"] = grpc_code;
    return {grpc_code == not_found ? 404U : 400U, js::serialize(out)};
}

FakeMember::Reply FakeMember::ask(const std::string& path, const Request& asked) {
    const std::lock_guard hold(cluster_->mutex);
    sim::EtcdStore& store = cluster_->store;
    try {
        js::object out = path == "kv/txn"             ? store.transaction(asked)
                         : path == "kv/range"         ? store.range(asked)
                         : path == "lease/grant"      ? store.grant(asked)
                         : path == "lease/keepalive"  ? store.keep_alive(asked)
                         : path == "lease/revoke"     ? store.revoke(asked)
                         : path == "lease/timetolive" ? store.time_to_live(asked, 5)
                                                      : Request();
        if (path == "cluster/member/list") {
            out["header"] = js::object{};
            out["members"] = js::array(cluster_->members, js::object{});
        }
        if (js::value* header = out.if_contains("header"))
            header->as_object()["cluster_id"] = cluster_->id;
        return {200, js::serialize(out)};
    } catch (const sim::EtcdError& e) {
        return refusal(e.code, e.what());
    }
}

void FakeMember::accept() {
    for (;;) {
        auto socket = std::make_shared<tcp::socket>(context_);
        boost::system::error_code ec;
        acceptor_.accept(*socket, ec);
        const std::lock_guard hold(mutex_);
        if (ended_ || ec) return;
        sockets_.push_back(socket);
        threads_.emplace_back([this, socket] { serve(*socket); });
    }
}

/// POST /v3/PATH HTTP/1.1, headers with a Content-Length, and as many bytes.
void FakeMember::serve(tcp::socket& socket) {
    boost::asio::streambuf buffer;
    boost::system::error_code ec;
    const auto take = [&](std::size_t size) {
        std::string out(
            boost::asio::buffers_begin(buffer.data()),
            boost::asio::buffers_begin(buffer.data()) + static_cast<std::ptrdiff_t>(size));
        buffer.consume(size);
        return out;
    };
    while (!ec) {
        const std::size_t head_size = boost::asio::read_until(socket, buffer, "\r\n\r\n", ec);
        if (ec) return;
        const std::string head = take(head_size);
        constexpr std::string_view begin = "POST /v3/", length = "Content-Length: ";
        const std::size_t size = std::stoul(head.substr(head.find(length) + length.size()));
        if (buffer.size() < size)
            boost::asio::read(socket, buffer, boost::asio::transfer_exactly(size - buffer.size()),
                              ec);
        if (ec) return;
        const std::string path =
            head.substr(begin.size(), head.find(' ', begin.size()) - begin.size());
        const std::string reply = answer(path, take(size));
        if (reply.empty()) break;
        boost::asio::write(socket, boost::asio::buffer(reply), ec);
        if (path == "watch" && reply.find("\r\n0\r\n") != reply.npos) break;
    }
    ::shutdown(socket.native_handle(), SHUT_RDWR);
}

std::string FakeMember::answer(const std::string& path, const std::string& body) {
    Instead instead;
    std::chrono::milliseconds later{0};
    Watch watch{};
    {
        const std::lock_guard hold(mutex_);
        ++requests_[path];
        instead = instead_;
        watch = watch_;
        if (const auto at = delays_.find(path); at != delays_.end()) later = at->second;
    }
    const Request asked = js::parse(body).as_object();
    std::optional<Reply> reply;
    if (instead) reply = instead(path, asked);
    if (!reply && path == "watch") {
        if (watch == Watch::refused) return {};
        const std::string begun =
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: "
            "chunked\r\n\r\n";
        const std::string created = "{\"result\":{\"created\":true}}\n";
        if (watch == Watch::ends) return begun + "0\r\n\r\n";
        return begun + "1C\r\n" + created + "\r\n";
    }
    if (!reply) reply = ask(path, asked);
    std::unique_lock hold(mutex_);
    changed_.wait(hold, [this] { return ended_ || !hangs_; });
    changed_.wait_for(hold, later, [this] { return ended_; });
    return http(*reply);
}

}  // namespace holdfast::test
