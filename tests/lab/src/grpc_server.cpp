#include "holdfast/lab/grpc_server.hpp"

#include <charconv>

#include "grpc_messages.hpp"

namespace holdfast::lab {
namespace {

/// "500m" and so on.
std::chrono::nanoseconds read_timeout(std::string_view text) {
    static constexpr std::pair<char, std::int64_t> units[] = {
        {'n', 1},           {'u', 1'000},          {'m', 1'000'000},
        {'S', 1'000000000}, {'M', 60'000'000'000}, {'H', 3'600'000'000'000}};
    std::int64_t count = 0;
    const auto end = std::from_chars(text.data(), text.data() + text.size(), count).ptr;
    for (const auto& [letter, length] : units) {
        // At most eight digits, as the protocol has it.
        if (text.size() > 1 && text.size() <= 9 && end == &text.back() && *end == letter) {
            return std::chrono::nanoseconds(count * length);
        }
    }
    throw LabError("gRPC: no timeout: " + std::string(text));
}

std::string percent_encoded(std::string_view text) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    std::string out;
    for (const char c : text) {
        if (c >= ' ' && c <= '~' && c != '%') {
            out += c;
            continue;
        }
        const unsigned byte = static_cast<unsigned char>(c);
        out += {'%', digits[byte >> 4U], digits[byte & 15U]};
    }
    return out;
}

}  // namespace

class GrpcServer::Impl {
public:
    explicit Impl(Listener& l)
        : listener_(l),
          session_(::nghttp2_session_server_new, this,
                   {{NGHTTP2_SETTINGS_MAX_FRAME_SIZE, 16384},
                    {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 0x7fffffff}},
                   [](nghttp2_session_callbacks* c) {
                       ::nghttp2_session_callbacks_set_on_begin_headers_callback(c, on_begin);
                       ::nghttp2_session_callbacks_set_on_header_callback(c, on_header);
                       ::nghttp2_session_callbacks_set_on_frame_recv_callback(c, on_frame);
                       ::nghttp2_session_callbacks_set_on_data_chunk_recv_callback(c, on_data);
                       ::nghttp2_session_callbacks_set_on_stream_close_callback(c, on_close);
                       ::nghttp2_session_callbacks_set_on_frame_send_callback(c, on_sent);
                   }) {}

    void receive(std::string_view bytes) {
        session_.receive(bytes);
        refuse_nonsense();
    }
    std::string output() {
        std::string out = session_.output();
        refuse_nonsense();
        return out;
    }
    bool is_open(Call call) const {
        const auto at = streams_.find(call);
        return at != streams_.end() && !at->second.finished;
    }

    void send(Call call, std::string_view message) {
        if (!is_open(call)) {
            return;
        }
        Stream& s = streams_.at(call);
        s.output.bytes += grpc_framed(message);
        if (s.answered) {
            return grpc_resume(session_, call);
        }
        s.answered = true;
        const nghttp2_nv headers[] = {grpc_header(":status", "200"),
                                      grpc_header("content-type", "application/grpc")};
        nghttp2_data_provider body{};
        body.read_callback = read_body;
        grpc_check(::nghttp2_submit_response(session_, call, headers, 2, &body));
    }
    void finish(Call call, int status, std::string_view text) {
        if (!is_open(call)) {
            return;
        }
        Stream& s = streams_.at(call);
        s.finished = true;
        s.status = std::to_string(status);
        s.text = percent_encoded(text);
        if (s.answered) {
            return grpc_resume(session_, call);
        }
        const nghttp2_nv headers[] = {
            grpc_header(":status", "200"), grpc_header("content-type", "application/grpc"),
            grpc_header("grpc-status", s.status), grpc_header("grpc-message", s.text)};
        grpc_check(::nghttp2_submit_response(session_, call, headers, 4, nullptr));
    }
    void foreign(Call call, std::string_view http_status, std::string_view content_type) {
        if (!is_open(call)) {
            return;
        }
        streams_.at(call).finished = true;
        const nghttp2_nv headers[] = {grpc_header(":status", http_status),
                                      grpc_header("content-type", content_type)};
        grpc_check(::nghttp2_submit_response(session_, call, headers, 2, nullptr));
    }
    void reset(Call call, std::uint32_t code) {
        if (streams_.erase(call) > 0) {
            grpc_check(::nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, call, code));
        }
    }
    void go_away(bool at_once, std::uint32_t code, std::string_view text) {
        going_ = true;
        if (!at_once) {
            return grpc_check(::nghttp2_submit_shutdown_notice(session_));
        }
        grpc_check(::nghttp2_submit_goaway(
            session_, NGHTTP2_FLAG_NONE, ::nghttp2_session_get_last_proc_stream_id(session_), code,
            reinterpret_cast<const std::uint8_t*>(text.data()), text.size()));
    }

private:
    struct Stream {
        Request request;
        std::string method, type;
        GrpcMessages input;
        GrpcOutput output;
        bool answered = false, finished = false;
        std::string status, text;
    };
    Stream* find(Call call) {
        const auto at = streams_.find(call);
        return at == streams_.end() ? nullptr : &at->second;
    }
    static Impl& self(void* user) { return *static_cast<Impl*>(user); }
    void refuse_nonsense() const {
        if (!nonsense_.empty()) {
            throw LabError(nonsense_);
        }
    }
    /// No exception passes through nghttp2.
    template <class Action>
    void guard(Action action) {
        try {
            action();
        } catch (const std::exception& e) {
            nonsense_ = e.what();
        }
    }

    static int on_begin(nghttp2_session*, const nghttp2_frame* frame, void* user) {
        if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
            self(user).streams_[frame->hd.stream_id];
        }
        return 0;
    }
    static int on_header(nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name,
                         std::size_t name_size, const std::uint8_t* value, std::size_t value_size,
                         std::uint8_t, void* user) {
        Stream* s = self(user).find(frame->hd.stream_id);
        if (s == nullptr) {
            return 0;
        }
        const auto which = grpc_text(name, name_size), text = grpc_text(value, value_size);
        if (which == ":path") {
            s->request.path = text;
        } else if (which == ":method") {
            s->method = text;
        } else if (which == "content-type") {
            s->type = text;
        } else if (which == "grpc-timeout") {
            self(user).guard([&] { s->request.timeout = read_timeout(text); });
        } else {
            s->request.headers.emplace(which, text);
        }
        return 0;
    }
    static int on_frame(nghttp2_session*, const nghttp2_frame* frame, void* user) {
        Impl& me = self(user);
        const Call call = frame->hd.stream_id;
        Stream* s = me.find(call);
        if (s == nullptr) {
            return 0;
        }
        if (frame->hd.type == NGHTTP2_HEADERS) {
            me.guard([&] { me.called(call, *s); });
        }
        if ((frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) &&
            (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) {
            me.guard([&] {
                if (!s->input.empty()) {
                    throw LabError("gRPC: a stream ends within a message");
                }
                me.listener_.last(call);
            });
        }
        return 0;
    }
    void called(Call call, Stream& s) {
        const auto te = s.request.headers.find("te");
        if (s.method != "POST" || !s.type.starts_with("application/grpc") ||
            te == s.request.headers.end() || te->second != "trailers") {
            throw LabError("gRPC: no call: " + s.method + " " + s.request.path + " of " + s.type);
        }
        listener_.called(call, s.request);
    }
    static int on_data(nghttp2_session*, std::uint8_t, std::int32_t id, const std::uint8_t* bytes,
                       std::size_t size, void* user) {
        Impl& me = self(user);
        me.guard([&] {
            if (Stream* s = me.find(id)) {
                s->input.add(grpc_text(bytes, size));
                while (auto message = s->input.next()) {
                    me.listener_.message(id, s->request, std::move(*message));
                    if (me.find(id) == nullptr) {
                        return;
                    }
                }
            }
        });
        return 0;
    }
    static int on_close(nghttp2_session*, std::int32_t id, std::uint32_t, void* user) {
        Impl& me = self(user);
        if (const auto at = me.streams_.find(id); at != me.streams_.end()) {
            const bool open = !at->second.finished;
            me.streams_.erase(at);
            if (open) {
                me.guard([&] { me.listener_.cancelled(id); });
            }
        }
        return 0;
    }
    /// A client that may still send is told that nobody reads it.
    static int on_sent(nghttp2_session* session, const nghttp2_frame* frame, void* user) {
        if (frame->hd.type == NGHTTP2_GOAWAY && !self(user).going_) {
            self(user).nonsense_ =
                std::string("HTTP/2: ") + ::nghttp2_http2_strerror(frame->goaway.error_code);
        }
        const bool over =
            frame->hd.type == NGHTTP2_HEADERS && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
        const Call call = frame->hd.stream_id;
        if (over && ::nghttp2_session_get_stream_remote_close(session, call) == 0) {
            ::nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, call, NGHTTP2_NO_ERROR);
        }
        return 0;
    }
    static ssize_t read_body(nghttp2_session* session, std::int32_t id, std::uint8_t* to,
                             std::size_t most, std::uint32_t* flags, nghttp2_data_source*,
                             void* user) {
        Stream* s = self(user).find(id);
        if (s == nullptr) {
            return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
        }
        const std::size_t count = s->output.copy(to, most);
        if (s->output.bytes.empty() && s->finished) {
            *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
            const nghttp2_nv trailers[] = {grpc_header("grpc-status", s->status),
                                           grpc_header("grpc-message", s->text)};
            ::nghttp2_submit_trailer(session, id, trailers, 2);
        } else if (count == 0) {
            return NGHTTP2_ERR_DEFERRED;
        }
        return static_cast<ssize_t>(count);
    }

    Listener& listener_;
    GrpcSession session_;
    std::map<Call, Stream> streams_;
    std::string nonsense_;
    bool going_ = false;
};

GrpcServer::GrpcServer(Listener& l) : impl_(std::make_unique<Impl>(l)) {}
GrpcServer::~GrpcServer() = default;

void GrpcServer::receive(std::string_view bytes) {
    impl_->receive(bytes);
}
std::string GrpcServer::output() {
    return impl_->output();
}
bool GrpcServer::is_open(Call call) const {
    return impl_->is_open(call);
}
void GrpcServer::send(Call call, std::string_view message) {
    impl_->send(call, message);
}
void GrpcServer::finish(Call call, int status, std::string_view text) {
    impl_->finish(call, status, text);
}
void GrpcServer::foreign(Call call, std::string_view http_status, std::string_view content_type) {
    impl_->foreign(call, http_status, content_type);
}
void GrpcServer::reset(Call call, std::uint32_t code) {
    impl_->reset(call, code);
}
void GrpcServer::go_away(bool at_once, std::uint32_t code, std::string_view text) {
    impl_->go_away(at_once, code, text);
}

}  // namespace holdfast::lab
