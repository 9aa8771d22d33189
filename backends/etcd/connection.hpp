// One connection to a member: gRPC, in clear or over TLS, for all calls at once.
#pragma once
#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "../tls/stream.hpp"
#include "grpc_client.hpp"
#include "holdfast/spi/net/gate.hpp"
#include "shared.hpp"

namespace holdfast::etcd {

/// Engine thread only.
class Connection : public std::enable_shared_from_this<Connection> {
public:
    Connection(std::shared_ptr<Shared>, tls::Context*, std::size_t member);

    struct Request {
        std::string_view method;
        const std::string& token;  ///< stands for the user; empty: there is none
        const google::protobuf::MessageLite& message;
        std::size_t longest;  ///< MiB that a message of the answer may have
    };
    /// True: no answer, or an error answer; in `detail`: what was said.
    struct Outcome : spi::Failure {
        bool doubt = false;        ///< the member may have executed it
        bool unprocessed = false;  ///< the member has surely not looked at it
        bool fresh = false;        ///< it was the first one on this connection
        bool said = false;         ///< `detail` has the member's own words
    };
    /// Connects if need be, and gets an answer. Ends at the deadline.
    awaitable<Outcome> ask(Request, google::protobuf::MessageLite& answer,
                           boot_clock::time_point deadline);
    /// Connects if need be, asks, and passes on each message until the call ends. Returns no error,
    /// or why there was no message by `deadline`. False, of `message`: it ends.
    class Watcher;
    awaitable<error_code> follow(Request, Watcher&, boot_clock::time_point deadline);

    /// Whether it takes calls.
    bool takes_calls() const noexcept { return !closed_ && !retired_ && client_.open(); }
    bool retired() const noexcept { return retired_; }
    /// Its member and the address, for people; empty while it is not open.
    std::string serving() const;
    /// It takes no more calls, and ends after those under way.
    void retire() noexcept;
    void close(const std::string& why = "it was closed") noexcept;

    const std::size_t member;
    bool used = false;  ///< it has answered

private:
    class Exchange;
    awaitable<spi::Failure> ready(boot_clock::time_point deadline);
    void open();
    awaitable<spi::Failure> connect();
    awaitable<void> read();
    void flush();
    void written(error_code);
    /// For people: why the connection broke.
    std::string why_cut(const error_code&);
    wire::Client::Request request(const Request&) const;
    Outcome outcome(const wire::End&, bool fresh) const;
    void retire_if_idle() noexcept;

    const std::shared_ptr<Shared> shared_;
    tls::Context* const tls_;  ///< null: no TLS
    const spi::Endpoint& host_;
    const std::string name_;
    std::string address_;
    boost::asio::ip::tcp::socket socket_;
    std::optional<tls::Stream> secure_;
    wire::Client client_;
    std::array<char, 64U << 10U> in_;
    std::string out_;
    bool opening_ = false, resolving_ = false, ready_ = false, writing_ = false, receiving_ = false,
         retired_ = false, closed_ = false;
    spi::Failure failed_;  ///< to connect
    spi::net::Gate gate_;
    std::uint64_t heard_ = 0;  ///< how often something came
};

/// A call whose answer has many messages. The caller of follow() keeps it; end() ends it.
class Connection::Watcher final : public wire::Call {
public:
    explicit Watcher(std::function<bool(std::string_view)> p) : piece_(std::move(p)) {}
    void end() noexcept;
    bool over() const noexcept { return over_; }
    /// The one that it follows; null: none.
    const Connection* connection() const noexcept { return connection_.get(); }

private:
    friend class Connection;
    void message(std::string_view) override;
    void ended(const wire::End&) override;
    std::function<bool(std::string_view)> piece_;
    std::shared_ptr<Connection> connection_;
    wire::Client::Id id_ = 0;
    spi::net::Gate gate_;
    bool begun_ = false, over_ = false;
    bool stopped_ = false;  ///< by end()
};

}  // namespace holdfast::etcd
