// The client's side of gRPC: calls with one request message each, and how each of them ended.
#pragma once
#include <chrono>
#include <functional>

#include "session.hpp"

namespace holdfast::etcd::wire {

/// How a call ended.
struct End {
    enum class By : std::uint8_t {
        status,       ///< the server's: `status` and `words`
        unprocessed,  ///< the server has surely not looked at it
        broken,       ///< the connection or the stream ended before there was a status
        foreign,      ///< it was answered, but not by gRPC
        too_long      ///< of a message: it was left
    } by = By::broken;
    int status = -1;    ///< grpc-status
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

class Client final : public Session {
public:
    /// `authority` is host and port. `tls` is what the scheme says.
    Client(std::string authority, bool tls);
    ~Client() override;

    struct Request {
        std::string_view path;                 ///< see methods.hpp
        std::string_view token;                ///< of the user; empty: none
        std::chrono::milliseconds timeout{0};  ///< 0: none
        std::size_t longest = 1U << 20U;       ///< bytes that each message of the answer may have
        bool stays_open = false;  ///< it may have more to say: a watch is over for some when not
    };
    using Id = std::int32_t;  ///< 0: none
    Id call(const Request&, const google::protobuf::MessageLite& message, Call&);
    /// Nothing more is told of it. Nothing happens if it has ended.
    void cancel(Id) noexcept;
    /// Whether it has been written, or a part of it.
    bool begun(Id) const noexcept;
    /// The connection has ended, and with it all calls.
    void broke(const std::string& why);

    /// Whether it takes new calls.
    bool open() const noexcept { return open_ && trouble().empty(); }
    std::size_t calls() const noexcept { return streams().size(); }

private:
    struct Stream;
    void header(wire::Stream&, std::string_view name, std::string_view value) override;
    void headed(wire::Stream&, bool last) override;
    void message(wire::Stream&, std::string_view) override;
    void refuse(wire::Stream&, std::string why) override;
    void closed(wire::Stream&, std::uint32_t code) override;
    void going_away() override { open_ = false; }

    const std::string authority_;
    const bool tls_;
    bool open_ = true;
};

}  // namespace holdfast::etcd::wire
