#include "holdfast/lab/grpc_client.hpp"

#include <charconv>
#include <map>

#include "grpc_messages.hpp"
#include "stream_socket.hpp"

namespace holdfast::lab {

class GrpcClient::Impl {
public:
    explicit Impl(std::string authority)
        : authority_(std::move(authority)),
          session_(::nghttp2_session_client_new, this, {{NGHTTP2_SETTINGS_ENABLE_PUSH, 0}},
                   [](nghttp2_session_callbacks* c) {
                       ::nghttp2_session_callbacks_set_on_header_callback(c, on_header);
                       ::nghttp2_session_callbacks_set_on_data_chunk_recv_callback(c, on_data);
                       ::nghttp2_session_callbacks_set_on_stream_close_callback(c, on_close);
                       ::nghttp2_session_callbacks_set_on_frame_recv_callback(c, on_frame);
                   }) {}

    Call start(const Request& r) {
        std::vector<nghttp2_nv> headers{grpc_header(":method", "POST"),
                                        grpc_header(":scheme", "http"),
                                        grpc_header(":path", r.path),
                                        grpc_header(":authority", authority_),
                                        grpc_header("content-type", "application/grpc"),
                                        grpc_header("te", "trailers")};
        if (!r.timeout.empty()) {
            headers.push_back(grpc_header("grpc-timeout", r.timeout));
        }
        if (!r.token.empty()) {
            headers.push_back(grpc_header("token", r.token));
        }
        nghttp2_data_provider body{};
        body.read_callback = read_body;
        const auto call = ::nghttp2_submit_request(session_, nullptr, headers.data(),
                                                   headers.size(), &body, nullptr);
        grpc_check(call);
        Stream& s = streams_[call];
        if (!r.message.empty() || !r.more) {
            s.output.bytes = grpc_framed(r.message);
        }
        s.more = r.more;
        return call;
    }
    void send(Call call, std::string_view message, bool more) {
        Stream& s = streams_.at(call);
        s.output.bytes += grpc_framed(message);
        s.more = more;
        grpc_resume(session_, call);
    }
    void cancel(Call call) {
        streams_.erase(call);
        grpc_check(::nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, call, NGHTTP2_CANCEL));
    }
    std::string output() { return session_.output(); }
    void receive(std::string_view bytes) {
        session_.receive(bytes);
        for (auto& [call, s] : streams_) {
            while (auto message = s.input.next()) {
                s.answer.messages.push_back(std::move(*message));
            }
        }
    }
    bool told_to_go() const { return told_to_go_; }
    GrpcAnswer& answer(Call call) { return streams_.at(call).answer; }
    void forget(Call call) { streams_.erase(call); }
    std::optional<Call> ended() {
        while (!ended_.empty()) {
            const Call call = ended_.front();
            ended_.pop_front();
            if (streams_.contains(call)) {
                return call;
            }
        }
        return std::nullopt;
    }

private:
    struct Stream {
        GrpcOutput output;
        bool more = false;
        GrpcMessages input;
        GrpcAnswer answer;
    };
    Stream* find(Call call) {
        const auto at = streams_.find(call);
        return at == streams_.end() ? nullptr : &at->second;
    }
    static Impl& self(void* user) { return *static_cast<Impl*>(user); }

    static ssize_t read_body(nghttp2_session*, std::int32_t id, std::uint8_t* to, std::size_t most,
                             std::uint32_t* flags, nghttp2_data_source*, void* user) {
        Stream* s = self(user).find(id);
        if (s == nullptr) {
            return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
        }
        const std::size_t count = s->output.copy(to, most);
        if (s->output.bytes.empty() && !s->more) {
            *flags |= NGHTTP2_DATA_FLAG_EOF;
        } else if (count == 0) {
            return NGHTTP2_ERR_DEFERRED;
        }
        return static_cast<ssize_t>(count);
    }
    static int on_header(nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name,
                         std::size_t name_size, const std::uint8_t* value, std::size_t value_size,
                         std::uint8_t, void* user) {
        Stream* s = self(user).find(frame->hd.stream_id);
        if (s == nullptr) {
            return 0;
        }
        const auto text = grpc_text(value, value_size);
        if (grpc_text(name, name_size) == "grpc-status") {
            std::from_chars(text.data(), text.data() + text.size(), s->answer.status);
        } else if (grpc_text(name, name_size) == "grpc-message") {
            s->answer.text = text;
        }
        return 0;
    }
    static int on_data(nghttp2_session*, std::uint8_t, std::int32_t id, const std::uint8_t* bytes,
                       std::size_t size, void* user) {
        if (Stream* s = self(user).find(id)) {
            s->input.add(grpc_text(bytes, size));
        }
        return 0;
    }
    static int on_close(nghttp2_session*, std::int32_t id, std::uint32_t, void* user) {
        if (Stream* s = self(user).find(id)) {
            s->answer.ended = true;
            self(user).ended_.push_back(id);
        }
        return 0;
    }
    static int on_frame(nghttp2_session*, const nghttp2_frame* frame, void* user) {
        if (frame->hd.type == NGHTTP2_GOAWAY) {
            self(user).told_to_go_ = true;
        }
        return 0;
    }

    const std::string authority_;
    GrpcSession session_;
    std::map<Call, Stream> streams_;
    std::deque<Call> ended_;
    bool told_to_go_ = false;
};

GrpcClient::GrpcClient(const std::string& authority) : impl_(std::make_unique<Impl>(authority)) {}
GrpcClient::GrpcClient(GrpcClient&&) noexcept = default;
GrpcClient::~GrpcClient() = default;

GrpcClient::Call GrpcClient::start(const Request& r) {
    return impl_->start(r);
}
void GrpcClient::send(Call call, std::string_view message, bool more) {
    impl_->send(call, message, more);
}
void GrpcClient::cancel(Call call) {
    impl_->cancel(call);
}
std::string GrpcClient::output() {
    return impl_->output();
}
void GrpcClient::receive(std::string_view bytes) {
    impl_->receive(bytes);
}
bool GrpcClient::told_to_go() const {
    return impl_->told_to_go();
}
GrpcAnswer& GrpcClient::answer(Call call) {
    return impl_->answer(call);
}
void GrpcClient::forget(Call call) {
    impl_->forget(call);
}
std::optional<GrpcClient::Call> GrpcClient::ended() {
    return impl_->ended();
}

class GrpcConnection::Impl {
public:
    Impl(const std::string& host, std::uint16_t port, std::chrono::nanoseconds cap)
        : socket_(host, port, cap), client(socket_.peer()) {}

    void flush() {
        const std::string bytes = client.output();
        if (!bytes.empty()) {
            socket_.write(bytes);
        }
    }
    /// False: it is not so by then.
    template <class Condition>
    bool reads_until(Condition reached, std::chrono::nanoseconds cap) {
        const auto end = StreamSocket::Clock::now() + cap;
        char buffer[65536];
        while (!reached()) {
            const auto bytes = socket_.read(buffer, sizeof buffer, end);
            if (bytes.empty()) {
                return false;
            }
            client.receive(bytes);
            flush();
        }
        return true;
    }
    const std::string& peer() const { return socket_.peer(); }

private:
    StreamSocket socket_;

public:
    GrpcClient client;
};

GrpcConnection::GrpcConnection(const std::string& host, std::uint16_t port,
                               std::chrono::nanoseconds cap)
    : impl_(std::make_unique<Impl>(host, port, cap)) {}
GrpcConnection::GrpcConnection(GrpcConnection&&) noexcept = default;
GrpcConnection::~GrpcConnection() = default;

GrpcConnection::Call GrpcConnection::start(const GrpcClient::Request& r) {
    const Call call = impl_->client.start(r);
    impl_->flush();
    return call;
}
void GrpcConnection::send(Call call, std::string_view message, bool more) {
    impl_->client.send(call, message, more);
    impl_->flush();
}
void GrpcConnection::cancel(Call call) {
    impl_->client.cancel(call);
    impl_->flush();
}
GrpcAnswer GrpcConnection::finish(Call call, std::chrono::nanoseconds cap) {
    GrpcAnswer& answer = impl_->client.answer(call);
    if (!impl_->reads_until([&] { return answer.ended; }, cap)) {
        throw LabError("no answer from " + impl_->peer());
    }
    GrpcAnswer out = std::move(answer);
    impl_->client.forget(call);
    return out;
}
GrpcConnection::Call GrpcConnection::any(std::chrono::nanoseconds cap) {
    std::optional<Call> call;
    if (!impl_->reads_until([&] { return (call = impl_->client.ended()).has_value(); }, cap)) {
        throw LabError("no answer from " + impl_->peer());
    }
    return *call;
}
std::optional<GrpcConnection::Call> GrpcConnection::any_beside(Call stream,
                                                               std::chrono::nanoseconds cap) {
    const GrpcAnswer& answer = impl_->client.answer(stream);
    std::optional<Call> call;
    const auto came = [&] {
        call = impl_->client.ended();
        return call.has_value() || !answer.messages.empty();
    };
    if (!impl_->reads_until(came, cap)) {
        throw LabError("no answer from " + impl_->peer());
    }
    return call;
}
std::optional<std::string> GrpcConnection::next(Call call, std::chrono::nanoseconds cap) {
    GrpcAnswer& answer = impl_->client.answer(call);
    impl_->reads_until([&] { return answer.ended || !answer.messages.empty(); }, cap);
    if (answer.messages.empty()) {
        return std::nullopt;
    }
    std::string out = std::move(answer.messages.front());
    answer.messages.pop_front();
    return out;
}

}  // namespace holdfast::lab
