// One connection to a member: HTTP, in clear or over TLS, with at most one request at a time.
#pragma once
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "../tls/stream.hpp"
#include "shared.hpp"

namespace holdfast::etcd {

class Connection : public std::enable_shared_from_this<Connection> {
public:
    using Response = boost::beast::http::response<boost::beast::http::string_body>;

    Connection(std::shared_ptr<Shared>, tls::Context*, std::size_t member);
    void close() noexcept;
    bool is_open() const noexcept { return socket_.is_open(); }
    /// "POST /v3/PATH"; the token stands for the user, and is empty where there is none.
    std::string request(const std::string& path, const std::string& body,
                        const std::string& token) const;
    /// Connects if need be, and gets an answer of at most so many MiB. Ends at the deadline. Sets
    /// `doubt` when it was sent and not answered.
    awaitable<error_code> ask(const std::string& request, std::uint64_t longest,
                              boot_clock::time_point deadline, Response&, bool& doubt,
                              std::string* detail);
    /// Connects, asks, and passes on what arrives until the connection ends. Returns no error, or
    /// why it could not begin by `deadline`.
    awaitable<error_code> follow(const std::string& request, boot_clock::time_point deadline,
                                 std::function<void(std::string_view)> piece);

    const std::size_t member;
    bool used = false;  ///< it has answered
    bool watches = false;

private:
    using Parser = boost::beast::http::response_parser<boost::beast::http::string_body>;
    awaitable<error_code> connect(boot_clock::time_point deadline, std::string* detail);
    awaitable<error_code> write(const std::string& request);
    /// An operation on whichever stream it has.
    template <class Operation>
    awaitable<error_code> run(Operation);

    const std::shared_ptr<Shared> shared_;
    tls::Context* const tls_;  ///< null: no TLS
    const spi::Endpoint& host_;
    boost::asio::ip::tcp::socket socket_;
    std::optional<tls::Stream> secure_;
    boost::beast::flat_buffer buffer_;
};

}  // namespace holdfast::etcd
