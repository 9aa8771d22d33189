// The client's end of gRPC over HTTP/2: without a socket, for simulated servers, and over one. It
// knows nothing of messages but their bytes.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/lab/wait_until.hpp"

namespace holdfast::lab {

/// What a call has brought so far.
struct GrpcAnswer {
    std::deque<std::string> messages;
    bool ended = false;
    int status = -1;   ///< gRPC's code once it has ended; -1: the stream ended without one
    std::string text;  ///< of the status

    bool operator==(const GrpcAnswer&) const = default;
};

/// Bytes in, bytes out.
///
/// Thread safety: one thread at a time.
class GrpcClient {
public:
    /// A call, by the number of its stream.
    using Call = std::int32_t;
    struct Request {
        std::string path;  ///< "/etcdserverpb.KV/Range"
        std::string message;
        bool more = false;         ///< further messages follow
        std::string timeout = {};  ///< "500m"; empty: none
        std::string token = {};    ///< empty: none
    };

    explicit GrpcClient(const std::string& authority);
    GrpcClient(GrpcClient&&) noexcept;
    ~GrpcClient();

    Call start(const Request&);
    void send(Call, std::string_view message, bool more = true);
    /// The stream is reset, and its answer forgotten.
    void cancel(Call);

    /// What is to be sent by now.
    std::string output();
    /// Errors: LabError for what is no HTTP/2.
    void receive(std::string_view bytes);
    /// True once the server has said that it takes no more calls.
    bool told_to_go() const;

    GrpcAnswer& answer(Call);
    void forget(Call);
    /// One that has ended since, each once; nullopt: none.
    std::optional<Call> ended();

private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

/// A blocking connection without TLS.
///
/// Thread safety: one thread at a time.
class GrpcConnection {
public:
    using Call = GrpcClient::Call;
    /// Errors: LabError, as of all that follows when the connection breaks or `cap` is over.
    GrpcConnection(const std::string& host, std::uint16_t port,
                   std::chrono::nanoseconds cap = default_cap);
    GrpcConnection(GrpcConnection&&) noexcept;
    ~GrpcConnection();

    Call start(const GrpcClient::Request&);
    void send(Call, std::string_view message, bool more = true);
    void cancel(Call);
    /// The whole answer, which is waited for.
    GrpcAnswer finish(Call, std::chrono::nanoseconds cap = default_cap);
    /// A call that has ended, each once; it is waited for.
    Call any(std::chrono::nanoseconds cap = default_cap);
    /// The same, or nullopt as soon as `stream` has a message.
    std::optional<Call> any_beside(Call stream, std::chrono::nanoseconds cap = default_cap);
    /// The next message; nullopt: none has come by then, or the call has ended.
    std::optional<std::string> next(Call, std::chrono::nanoseconds cap = default_cap);
    /// One request, one answer.
    GrpcAnswer ask(const std::string& path, const std::string& message) {
        return finish(start({path, message}));
    }

private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace holdfast::lab
