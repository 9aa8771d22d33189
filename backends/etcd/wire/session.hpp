// gRPC over HTTP/2 without a socket: bytes in, bytes out, by nghttp2. This is what a client and a
// server have alike; client.hpp is the one, and the tests have a server of their own.
#pragma once
#include <nghttp2/nghttp2.h>

#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace google::protobuf {
class MessageLite;
}

namespace holdfast::etcd::wire {

/// Appends a message with gRPC's five bytes before it.
void append_framed(std::string& out, const google::protobuf::MessageLite&);
void append_framed(std::string& out, std::string_view message);

/// Percent-encoding of grpc-message.
std::string percent_encoded(std::string_view);
std::string percent_decoded(std::string_view);

struct Header {
    std::string_view name, value;
    bool indexed = true;  ///< false: no table of HPACK's keeps it, as it changes each time
};

/// One call. Its side of it is open until it is closed.
class Stream {
public:
    virtual ~Stream() = default;
    std::int32_t id = 0;
    std::size_t longest = 1U << 20U;  ///< bytes that a message of the peer's may have
    bool begun = false;               ///< its request was written, or is about to be
    bool closed = false;              ///< nothing of it is told any more

private:
    friend class Session;
    std::string out_;  ///< what is to be sent
    std::size_t sent_ = 0;
    bool complete_ = false;  ///< nothing comes after `out_`
    bool deferred_ = false;  ///< it waits for more
    std::vector<std::pair<std::string, std::string>> trailers_;
    std::string in_;  ///< the beginning of a message
};

class Session {
public:
    virtual ~Session();
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    /// Takes what has arrived, and tells what it says. Not to be called while it tells. False: the
    /// peer does not speak HTTP/2, or said that it ends the connection; trouble() says more.
    bool receive(std::string_view bytes);
    /// Appends what is to be sent now.
    void send(std::string& out);
    const std::string& trouble() const noexcept { return trouble_; }

    /// Ends a stream of either side at once. It is told as closed by the next receive() or send().
    void reset(Stream&, std::uint32_t code = NGHTTP2_CANCEL);

protected:
    enum class Role : std::uint8_t { client, server };
    explicit Session(Role);

    // --- what the peer says
    /// A server: of a call that begins. The session owns what it returns until it is closed.
    virtual std::unique_ptr<Stream> make_stream() { return nullptr; }
    virtual void header(Stream&, std::string_view name, std::string_view value) = 0;
    /// All headers are told; `last`: nothing follows.
    virtual void headed(Stream&, bool last) = 0;
    virtual void message(Stream&, std::string_view) = 0;
    /// A message is longer than the stream takes, or compressed: nothing more of it is read.
    virtual void refuse(Stream&, std::string why) = 0;
    /// The peer sends no more.
    virtual void half_closed(Stream&) {}
    /// HTTP/2's code for why; 0: it ended well.
    virtual void closed(Stream&, std::uint32_t code) = 0;
    /// The peer takes no new calls. Those that it did not see are closed with REFUSED_STREAM.
    virtual void going_away() {}

    // --- what this side says
    /// A client's call. The session owns it until it is closed.
    Stream& begin(std::unique_ptr<Stream>, std::initializer_list<Header>);
    /// The head of a server's answer; `last`: and the end of it.
    void answer(Stream&, std::initializer_list<Header>, bool last);
    void write(Stream&, std::string_view message);
    void write(Stream&, const google::protobuf::MessageLite& message);
    /// A server's: it looks at no call after this one.
    void go_away(std::int32_t last);
    /// Nothing more is written; a server says so in trailers.
    void finish(Stream&, std::vector<std::pair<std::string, std::string>> trailers = {});

    const std::map<std::int32_t, std::unique_ptr<Stream>>& streams() const { return streams_; }
    void fail(std::string why);
    /// As if the peer had ended it.
    void drop(std::int32_t id) { over(id, NGHTTP2_CANCEL); }

private:
    struct Callbacks;
    void take(Stream&, std::string_view bytes);
    void resume(Stream&);
    void check();
    void over(std::int32_t id, std::uint32_t code);

    const Role role_;
    nghttp2_session* session_ = nullptr;
    std::map<std::int32_t, std::unique_ptr<Stream>> streams_;
    std::string trouble_;
    bool heard_ = false;    ///< the peer has said something
    bool settled_ = false;  ///< ... that was HTTP/2
};

}  // namespace holdfast::etcd::wire
