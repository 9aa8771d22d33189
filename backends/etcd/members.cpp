#include "members.hpp"

// A false alarm of g++ 12 about coroutine frames, whose memory Boost allocates in its own way.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
#endif

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <boost/json/parse.hpp>
#include <utility>

#include "errors.hpp"
#include "holdfast/spi/net/endpoint.hpp"
#include "holdfast/spi/net/gate.hpp"
#include "holdfast/spi/net/socket.hpp"
#include "holdfast/spi/net/watchdog.hpp"
#include "messages.hpp"

namespace holdfast::etcd {
namespace {

namespace http = boost::beast::http;
using spi::net::tcp;

constexpr std::size_t most_under_way = 32;
constexpr std::uint64_t most_body = 64U << 20U;  // operators' lists are long; grants are short

http::request<http::string_body> request_for(const std::string& host, const std::string& path,
                                             const std::string& body) {
    http::request<http::string_body> r{http::verb::post, "/v3/" + path, 11};
    r.set(http::field::host, host);
    r.set(http::field::content_type, "application/json");
    r.body() = body;
    r.prepare_payload();
    return r;
}

/// A stream answers with a line for each message; the first one counts.
error_code read_body(unsigned status, std::string_view bytes, boost::json::object& out,
                     std::string* detail) {
    boost::system::error_code bad;
    auto value = boost::json::parse(bytes.substr(0, bytes.find('\n')), bad);
    boost::json::object* all = bad ? nullptr : value.if_object();
    if (all == nullptr) return make(status == 404 ? Error::too_old : Error::protocol);
    boost::json::object* error = nullptr;
    if (auto* inner = all->if_contains("error")) error = inner->if_object();
    if (status == 200 && error == nullptr) {
        if (auto* inner = all->if_contains("result"); inner != nullptr && inner->is_object())
            out = std::move(inner->get_object());
        else
            out = std::move(*all);
        return {};
    }
    const boost::json::object& said = error != nullptr ? *error : *all;
    std::string words = text(said, "message");
    if (words.empty()) words = text(*all, "error");
    const long long code = error != nullptr ? number(said, "grpc_code") : number(said, "code");
    if (detail != nullptr) *detail = words.substr(0, 200);
    return from_answer(code, status, words);
}

}  // namespace

struct Members::Connection {
    Connection(const asio::any_io_executor& e, std::size_t m) : socket(e), member(m) {}
    void close() noexcept {
        error_code ignored;
        socket.close(ignored);
    }
    tcp::socket socket;
    boost::beast::flat_buffer buffer;
    const std::size_t member;
    bool used = false;
};

class Members::Stream {
public:
    explicit Stream(std::function<void(std::string_view)> p) : piece(std::move(p)) {}
    std::function<void(std::string_view)> piece;
    ConnectionPtr connection;
    bool ended = false;
};

std::shared_ptr<Members::Stream> Members::make_stream(std::function<void(std::string_view)> piece) {
    return std::make_shared<Stream>(std::move(piece));
}

void Members::end(Stream& s) noexcept {
    s.ended = true;
    if (s.connection) s.connection->close();
}

struct Members::Turn {
    spi::net::Gate gate;
    bool given = false;
};

Members::Members(std::shared_ptr<Shared> s) : shared_(std::move(s)) {}
Members::~Members() = default;

void Members::close() noexcept {
    closed_ = true;
    for (const ConnectionPtr& c : all_)
        c->close();
    for (const auto& t : waiting_)
        t->gate.open();
}

// A member that did not answer is asked again when the others have had their turn.
void Members::leave(std::size_t member) {
    if (member != at_) return;
    at_ = (at_ + 1) % size();
    for (const ConnectionPtr& c : idle_) {
        c->close();
        std::erase(all_, c);
    }
    idle_.clear();
}

awaitable<bool> Members::turn(boot_clock::time_point deadline) {
    if (under_way_ < most_under_way) {
        ++under_way_;
        co_return true;
    }
    const auto mine = std::make_shared<Turn>();
    waiting_.push_back(mine);
    while (!mine->given && !closed_ && boot_clock::now() < deadline) {
        auto wait = mine->gate.wait(shared_->engine, deadline);
        co_await std::move(wait);
    }
    if (!mine->given) std::erase(waiting_, mine);
    co_return mine->given;
}

void Members::give_turn() {
    if (waiting_.empty()) {
        --under_way_;
        return;
    }
    const auto next = std::move(waiting_.front());
    waiting_.pop_front();
    next->given = true;
    next->gate.open();
}

awaitable<error_code> Members::connect(ConnectionPtr c, boot_clock::time_point deadline,
                                       std::string* detail) {
    const spi::Endpoint& host = shared_->options.hosts[c->member];
    std::vector<std::string> hosts{host.host};
    auto looking = shared_->names.look_up(std::move(hosts), deadline);
    const auto found = co_await std::move(looking);
    if (!found.front()) {
        *detail = host.host + ": " + spi::HostNames::words(found.front().error());
        co_return make(Error::unresolved);
    }
    std::vector<tcp::endpoint> all;
    for (const auto& address : *found.front())
        all.emplace_back(address, host.port);
    auto task = spi::net::connect(c->socket, all, deadline, detail);
    const auto reached = co_await std::move(task);
    if (!reached) co_return make(Error::unreachable);
    co_return error_code();
}

awaitable<error_code> Members::exchange(ConnectionPtr c, const std::string& path,
                                        const std::string& body, boot_clock::time_point deadline,
                                        Answer& answer, std::string* detail) {
    const spi::net::Watchdog<Connection> watchdog(shared_->engine, deadline, c);
    const std::string host = spi::text_of(shared_->options.hosts[c->member]);
    error_code ec;
    auto token = asio::redirect_error(asio::use_awaitable, ec);
    if (!c->socket.is_open()) {
        // A member that takes no connection has its share of the time only.
        auto opening = connect(c, deadline, detail);
        const error_code why = co_await std::move(opening);
        if (why) co_return why;
    }
    auto request = request_for(host, path, body);
    shared_->requests.fetch_add(1, std::memory_order_relaxed);
    co_await http::async_write(c->socket, request, token);
    http::response_parser<http::string_body> parser;
    parser.body_limit(most_body);
    if (!ec) co_await http::async_read(c->socket, c->buffer, parser, token);
    if (ec) {
        *detail = host + ": " + (watchdog.fired() ? "no answer" : ec.message());
        answer.doubt = true;
        c->close();
        // One that was kept may have ended before the request came.
        const bool unread = !parser.got_some();
        co_return make(watchdog.fired()    ? Error::no_answer
                       : unread && c->used ? Error::unreachable
                                           : Error::closed);
    }
    auto message = parser.release();
    if (!message.keep_alive()) c->close();
    c->used = true;
    const error_code why = read_body(message.result_int(), message.body(), answer.body, detail);
    if (why && !nothing_done(why)) answer.doubt = true;
    co_return why;
}

awaitable<Members::Answer> Members::post(std::string path, std::string body,
                                         boot_clock::time_point deadline, std::string* detail) {
    const auto self = shared_from_this();
    Answer answer;
    auto taking = turn(deadline);
    if (!co_await std::move(taking)) {
        answer.why = closed_ ? make_error_code(errc::closed) : make(Error::no_answer);
        co_return answer;
    }
    for (std::size_t tried = 0; tried < size();) {
        if (closed_) {
            answer.why = make_error_code(errc::closed);
            break;
        }
        ConnectionPtr c;
        if (!idle_.empty()) {
            c = std::move(idle_.back());
            idle_.pop_back();
        } else {
            c = std::make_shared<Connection>(shared_->engine, at_);
            all_.push_back(c);
        }
        const bool fresh = !c->used;
        // The last member has all the time that is left.
        const auto left = static_cast<int>(size() - tried);
        const auto now = boot_clock::now();
        const auto until = fresh ? now + (deadline - now) / left : deadline;
        const bool before = std::exchange(answer.doubt, false);
        auto task = exchange(c, path, body, until, answer, detail);
        answer.why = co_await std::move(task);
        const bool doubt = std::exchange(answer.doubt, before || answer.doubt);
        if (c->socket.is_open() && c->member == at_ && !closed_) {
            idle_.push_back(c);
        } else {
            c->close();
            std::erase(all_, c);
        }
        if (!answer.why) break;
        if (answer.why == make(Error::unreachable) && doubt && !answer.repeated) {
            // Its connection had ended while it was idle: most likely nothing was executed.
            answer.repeated = true;
            continue;
        }
        const bool silent =
            answer.why == make(Error::no_answer) || answer.why == make(Error::closed) ||
            answer.why == make(Error::unreachable) || answer.why == make(Error::unresolved) ||
            answer.why == make(Error::no_leader);
        if (silent) leave(c->member);
        if (doubt || !silent) break;
        ++tried;
    }
    give_turn();
    co_return answer;
}

awaitable<error_code> Members::follow(std::shared_ptr<Stream> stream, std::string path,
                                      std::string body, boot_clock::time_point deadline) {
    const auto self = shared_from_this();
    if (closed_ || stream->ended) co_return make_error_code(errc::closed);
    const auto c = std::make_shared<Connection>(shared_->engine, at_);
    stream->connection = c;
    all_.push_back(c);
    const std::string host = spi::text_of(shared_->options.hosts[c->member]);
    std::string detail;
    http::response_parser<http::string_body> parser;
    parser.body_limit(boost::none);
    parser.eager(true);
    auto piece = [stream](std::uint64_t, boost::beast::string_view bytes,
                          boost::system::error_code&) {
        stream->piece(std::string_view(bytes.data(), bytes.size()));
        return bytes.size();
    };
    parser.on_chunk_body(piece);
    error_code ec;
    auto token = asio::redirect_error(asio::use_awaitable, ec);
    {
        const spi::net::Watchdog<Connection> watchdog(shared_->engine, deadline, c);
        auto opening = connect(c, deadline, &detail);
        ec = co_await std::move(opening);
        if (!ec) {
            auto request = request_for(host, path, body);
            shared_->requests.fetch_add(1, std::memory_order_relaxed);
            co_await http::async_write(c->socket, request, token);
        }
        if (!ec) co_await http::async_read_header(c->socket, c->buffer, parser, token);
    }
    const bool begun = !ec && parser.get().result_int() == 200;
    if (begun) co_await http::async_read(c->socket, c->buffer, parser, token);
    c->close();
    std::erase(all_, c);
    stream->connection.reset();
    if (begun) co_return error_code();
    leave(c->member);
    co_return ec ? ec : make(Error::protocol);
}

}  // namespace holdfast::etcd
