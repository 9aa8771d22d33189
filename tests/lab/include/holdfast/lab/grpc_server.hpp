// The server's end of gRPC over HTTP/2 on one connection, without a socket: for simulated members
// and those that a test writes the answers of. It does on the wire what grpc-go does, and knows
// nothing of messages but their bytes.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::lab {

/// Bytes in, bytes out.
///
/// Thread safety: one thread at a time.
class GrpcServer {
public:
    /// A call, by the number of its stream.
    using Call = std::int32_t;
    struct Request {
        std::string path;  ///< "/etcdserverpb.KV/Range"
        std::optional<std::chrono::nanoseconds> timeout;
        std::map<std::string, std::string, std::less<>> headers;  ///< all others
    };
    /// What the client does; told from within receive().
    class Listener {
    public:
        virtual ~Listener() = default;
        virtual void called(Call, const Request&) {}
        virtual void message(Call, const Request&, std::string bytes) = 0;
        virtual void last(Call) {}       ///< no further message follows
        virtual void cancelled(Call) {}  ///< the client has reset the stream
    };

    explicit GrpcServer(Listener&);
    ~GrpcServer();

    // --- Errors: LabError once the client has sent what is no HTTP/2, or no gRPC
    void receive(std::string_view bytes);
    /// What is to be sent by now.
    std::string output();

    /// False: the call is over.
    bool is_open(Call) const;
    // --- nothing happens to a call that is over
    void send(Call, std::string_view message);
    /// The call ends with this status.
    void finish(Call, int status = 0, std::string_view text = {});
    /// It is answered by something that speaks HTTP/2 alone.
    void foreign(Call, std::string_view http_status, std::string_view content_type);
    /// The stream is reset, with HTTP/2's code.
    void reset(Call, std::uint32_t code);
    /// Calls that are under way go on, and no others are taken. `at_once`: the last call that is
    /// taken is named, otherwise that follows with a second one.
    void go_away(bool at_once = true, std::uint32_t code = 0, std::string_view text = {});

private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace holdfast::lab
