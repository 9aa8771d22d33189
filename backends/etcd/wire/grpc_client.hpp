// gRPC over HTTP/2 without a socket, by nghttp2: bytes in, bytes out. A client's calls with one
// request message each, and how each of them ended.
#pragma once
#include <boost/container/flat_map.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pool.hpp"

namespace google::protobuf {
class MessageLite;
}

namespace holdfast::etcd::wire {

/// How a call ended.
struct End {
    enum class By : std::uint8_t {
        status,       ///< the server's: `status` and `words`
        unprocessed,  ///< the server has surely not looked at it
        broken,       ///< the connection or the stream ended before there was a status
        foreign,      ///< what answers speaks something else
        unreadable    ///< a message was too long, or compressed
    } by = By::broken;
    int status = -1;    ///< grpc-status; -1: none came
    unsigned http = 0;  ///< its status; 0: none came
    std::string words;  ///< grpc-message, or what else says why
};

/// What a call is told. It may be destroyed after ended(), or after Client::cancel().
class Call {
public:
    virtual void message(std::string_view) = 0;
    virtual void ended(const End&) = 0;

protected:
    ~Call() = default;
};

class Client {
public:
    /// `authority` is host and port. `tls` is what the scheme says.
    Client(std::string authority, bool tls);
    ~Client();
    Client(const Client&) = delete;
    Client& operator=(const Client&) = delete;

    struct Request {
        std::string_view path;                 ///< see methods.hpp
        std::string_view token;                ///< of the user; empty: none
        std::chrono::milliseconds timeout{0};  ///< 0: none
        std::size_t longest = 1U << 20U;       ///< bytes that each message of the answer may have
        bool stays_open = false;  ///< it may have more to say: some end a watch when it has not
    };
    using Id = std::int32_t;
    /// The message is written at once; the call is sent by send().
    Id call(const Request&, const google::protobuf::MessageLite& message, Call&);
    /// Nothing more is told of it. Nothing happens if it has ended, or was cancelled.
    void cancel(Id) noexcept;
    /// Whether it has been written, or a part of it.
    bool begun(Id) const noexcept;

    /// Takes what has arrived, and tells the calls. They may call anything but receive() and
    /// send(). False: the connection is of no use any more; trouble() says why.
    bool receive(std::string_view bytes);
    /// Appends what is to be sent now.
    void send(std::string& out);
    /// The connection has ended, and with it all calls.
    void broke(const std::string& why);

    const std::string& trouble() const noexcept { return trouble_; }
    /// Whether it takes new calls.
    bool open() const noexcept { return open_ && trouble_.empty(); }
    std::size_t calls() const noexcept { return streams_.size(); }

private:
    struct Stream;
    struct Callbacks;
    void header(Stream&, std::string_view name, std::string_view value);
    void take(Stream&, std::string_view bytes);
    void refuse(Stream&, std::string why);
    void reset(const Stream&) noexcept;
    void over(Id, std::uint32_t code);
    void fail(std::string_view why);
    void check();
    std::unique_ptr<Stream> make_stream();

    const std::string authority_;
    const bool tls_;
    Pool pool_;
    nghttp2_session* session_ = nullptr;
    boost::container::flat_map<Id, std::unique_ptr<Stream>> streams_;
    std::vector<std::unique_ptr<Stream>> spare_;  ///< with their memory
    std::string trouble_;
    bool open_ = true;
    bool heard_ = false;    ///< the peer has said something
    bool foreign_ = false;  ///< ... that is not HTTP/2
};

}  // namespace holdfast::etcd::wire
