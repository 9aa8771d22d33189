#include "session.hpp"

#include <google/protobuf/message_lite.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace holdfast::etcd::wire {
namespace {

constexpr std::size_t frame_head = 5;         // gRPC's: compressed or not, and four bytes of length
constexpr std::uint32_t window = 16U << 20U;  // twice the longest message: its reader never waits
constexpr std::size_t most_headers = 8;

void append_head(std::string& out, std::size_t size) {
    out += '\0';
    for (unsigned shift = 32; shift != 0; shift -= 8)
        out += static_cast<char>(size >> (shift - 8) & 255U);
}

std::size_t size_in(const char* head) {
    std::size_t size = 0;
    for (std::size_t i = 1; i < frame_head; ++i)
        size = size << 8U | static_cast<unsigned char>(head[i]);
    return size;
}

/// nghttp2 takes bytes that it does not change as if it might.
std::uint8_t* bytes_of(std::string_view text) {
    return reinterpret_cast<std::uint8_t*>(const_cast<char*>(text.data()));
}
std::string_view text_of(const std::uint8_t* bytes, std::size_t size) {
    return {reinterpret_cast<const char*>(bytes), size};
}

/// As nghttp2 wants them. They are read, and copied where they are indexed, when the frame is sent.
struct Headers {
    explicit Headers(std::initializer_list<Header> all) {
        for (const Header& h : all) {
            if (h.value.empty()) continue;
            const auto flags = h.indexed ? NGHTTP2_NV_FLAG_NONE : NGHTTP2_NV_FLAG_NO_INDEX;
            list[size++] = {bytes_of(h.name), bytes_of(h.value), h.name.size(), h.value.size(),
                            static_cast<std::uint8_t>(flags)};
        }
    }
    std::array<nghttp2_nv, most_headers> list{};
    std::size_t size = 0;
};

}  // namespace

void append_framed(std::string& out, const google::protobuf::MessageLite& message) {
    append_head(out, message.ByteSizeLong());
    message.AppendPartialToString(&out);
}

void append_framed(std::string& out, std::string_view message) {
    append_head(out, message.size());
    out += message;
}

std::string percent_encoded(std::string_view text) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    std::string out;
    for (const char c : text) {
        if (c >= ' ' && c <= '~' && c != '%') {
            out += c;
            continue;
        }
        const auto byte = static_cast<unsigned char>(c);
        out += {'%', digits[byte >> 4U], digits[byte & 15U]};
    }
    return out;
}

std::string percent_decoded(std::string_view text) {
    const auto digit = [](char c) {
        if (c >= '0' && c <= '9') return c - '0';
        if (c >= 'A' && c <= 'F') return c - 'A' + 10;
        return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    };
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const bool escaped = text[i] == '%' && i + 2 < text.size() && digit(text[i + 1]) >= 0 &&
                             digit(text[i + 2]) >= 0;
        out += escaped ? static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2])) : text[i];
        if (escaped) i += 2;
    }
    return out;
}

// --- what nghttp2 calls

struct Session::Callbacks {
    static Session& of(void* user) { return *static_cast<Session*>(user); }
    static Stream* stream(nghttp2_session* s, std::int32_t id) {
        return static_cast<Stream*>(nghttp2_session_get_stream_user_data(s, id));
    }

    static int begin_headers(nghttp2_session* s, const nghttp2_frame* f, void* user) {
        Session& self = of(user);
        if (self.role_ != Role::server || f->headers.cat != NGHTTP2_HCAT_REQUEST) return 0;
        auto made = self.make_stream();
        made->id = f->hd.stream_id;
        nghttp2_session_set_stream_user_data(s, f->hd.stream_id, made.get());
        self.streams_[f->hd.stream_id] = std::move(made);
        return 0;
    }

    static int header(nghttp2_session* s, const nghttp2_frame* f, const std::uint8_t* name,
                      std::size_t name_size, const std::uint8_t* value, std::size_t value_size,
                      std::uint8_t, void* user) {
        Stream* const one = stream(s, f->hd.stream_id);
        if (one != nullptr && !one->closed)
            of(user).header(*one, text_of(name, name_size), text_of(value, value_size));
        return 0;
    }

    static int frame(nghttp2_session* s, const nghttp2_frame* f, void* user) {
        Session& self = of(user);
        if (f->hd.type == NGHTTP2_GOAWAY) self.going_away();
        if (f->hd.type == NGHTTP2_SETTINGS) self.settled_ = true;
        Stream* const one = stream(s, f->hd.stream_id);
        if (one == nullptr || one->closed) return 0;
        const bool last = (f->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
        if (f->hd.type == NGHTTP2_HEADERS) self.headed(*one, last);
        const bool has_end = f->hd.type == NGHTTP2_HEADERS || f->hd.type == NGHTTP2_DATA;
        if (has_end && last && !one->closed) self.half_closed(*one);
        return 0;
    }

    static int data(nghttp2_session* s, std::uint8_t, std::int32_t id, const std::uint8_t* bytes,
                    std::size_t size, void* user) {
        if (Stream* const one = stream(s, id)) of(user).take(*one, text_of(bytes, size));
        return 0;
    }

    static int close(nghttp2_session*, std::int32_t id, std::uint32_t code, void* user) {
        of(user).over(id, code);
        return 0;
    }

    static int before_send(nghttp2_session* s, const nghttp2_frame* f, void*) {
        if (f->hd.type != NGHTTP2_HEADERS) return 0;
        if (Stream* const one = stream(s, f->hd.stream_id)) one->begun = true;
        return 0;
    }

    static ssize_t read(nghttp2_session* s, std::int32_t id, std::uint8_t* to, std::size_t size,
                        std::uint32_t* flags, nghttp2_data_source* source, void*) {
        Stream& one = *static_cast<Stream*>(source->ptr);
        const std::size_t n = std::min(size, one.out_.size() - one.sent_);
        std::memcpy(to, one.out_.data() + one.sent_, n);
        one.sent_ += n;
        if (one.sent_ != one.out_.size()) return static_cast<ssize_t>(n);
        one.out_.clear();
        one.sent_ = 0;
        if (one.complete_) {
            *flags |= NGHTTP2_DATA_FLAG_EOF;
            if (!one.trailers_.empty()) {
                *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
                std::vector<nghttp2_nv> all;
                for (const auto& [name, value] : one.trailers_)
                    all.push_back({bytes_of(name), bytes_of(value), name.size(), value.size(),
                                   NGHTTP2_NV_FLAG_NONE});
                nghttp2_submit_trailer(s, id, all.data(), all.size());
            }
        } else if (n == 0) {
            one.deferred_ = true;
            return NGHTTP2_ERR_DEFERRED;
        }
        return static_cast<ssize_t>(n);
    }
};

// --- a session

Session::Session(Role r) : role_(r) {
    nghttp2_session_callbacks* all = nullptr;
    nghttp2_session_callbacks_new(&all);
    nghttp2_session_callbacks_set_on_begin_headers_callback(all, Callbacks::begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(all, Callbacks::header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(all, Callbacks::frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(all, Callbacks::data);
    nghttp2_session_callbacks_set_on_stream_close_callback(all, Callbacks::close);
    nghttp2_session_callbacks_set_before_frame_send_callback(all, Callbacks::before_send);
    const bool client = r == Role::client;
    (client ? nghttp2_session_client_new : nghttp2_session_server_new)(&session_, all, this);
    nghttp2_session_callbacks_del(all);
    const nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, window},
                                               {NGHTTP2_SETTINGS_ENABLE_PUSH, 0}};
    nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings, client ? 2 : 1);
    nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0, window);
}

Session::~Session() {
    nghttp2_session_del(session_);
}

void Session::fail(std::string why) {
    if (trouble_.empty()) trouble_ = std::move(why);
}

bool Session::receive(std::string_view bytes) {
    if (!trouble_.empty()) return false;
    if (role_ == Role::client && !std::exchange(heard_, heard_ || !bytes.empty()) &&
        bytes.starts_with("HTTP/")) {
        fail("it answers in HTTP/1: " + std::string(bytes.substr(0, bytes.find_first_of("\r\n"))));
        return false;
    }
    const auto* at = reinterpret_cast<const std::uint8_t*>(bytes.data());
    const ssize_t n = nghttp2_session_mem_recv(session_, at, bytes.size());
    if (n < 0) fail(nghttp2_strerror(static_cast<int>(n)));
    check();
    return trouble_.empty();
}

void Session::send(std::string& out) {
    for (;;) {
        const std::uint8_t* bytes = nullptr;
        const ssize_t n = nghttp2_session_mem_send(session_, &bytes);
        if (n < 0) fail(nghttp2_strerror(static_cast<int>(n)));
        if (n <= 0) return check();
        out += text_of(bytes, static_cast<std::size_t>(n));
    }
}

void Session::check() {
    if (nghttp2_session_want_read(session_) != 0) return;
    fail(settled_ ? "HTTP/2 was ended" : "it does not speak HTTP/2");
}

void Session::reset(Stream& s, std::uint32_t code) {
    nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, s.id, code);
}

void Session::over(std::int32_t id, std::uint32_t code) {
    const auto at = streams_.find(id);
    if (at == streams_.end()) return;
    const auto one = std::move(at->second);
    streams_.erase(at);
    if (!std::exchange(one->closed, true)) closed(*one, code);
}

void Session::take(Stream& s, std::string_view bytes) {
    std::string& in = s.in_;
    while (!s.closed && !bytes.empty()) {
        const auto more = [&](std::size_t wanted) {  // up to so many of the message
            const auto n = std::min(wanted - in.size(), bytes.size());
            in += bytes.substr(0, n);
            bytes.remove_prefix(n);
            return in.size() == wanted;
        };
        const bool whole_head = in.empty() && bytes.size() >= frame_head;
        if (!whole_head && in.size() < frame_head && !more(frame_head)) return;
        const char* const head = whole_head ? bytes.data() : in.data();
        const std::size_t size = size_in(head);
        if (head[0] != 0 || size > s.longest) {
            refuse(s, head[0] != 0 ? "a message is compressed"
                                   : "a message of " + std::to_string(size) + " bytes");
            return;
        }
        if (whole_head && bytes.size() >= frame_head + size) {
            const auto text = bytes.substr(frame_head, size);
            bytes.remove_prefix(frame_head + size);
            message(s, text);
            continue;
        }
        if (!more(frame_head + size)) return;
        const std::string text = std::exchange(in, {});
        message(s, std::string_view(text).substr(frame_head));
    }
}

Stream& Session::begin(std::unique_ptr<Stream> s, std::initializer_list<Header> all) {
    Stream& one = *s;
    Headers headers(all);
    nghttp2_data_provider body{};
    body.source.ptr = &one;
    body.read_callback = Callbacks::read;
    one.id =
        nghttp2_submit_request(session_, nullptr, headers.list.data(), headers.size, &body, &one);
    if (one.id < 0) fail(nghttp2_strerror(one.id));  // no numbers are left
    streams_[one.id] = std::move(s);
    return one;
}

void Session::answer(Stream& s, std::initializer_list<Header> all, bool last) {
    Headers headers(all);
    nghttp2_data_provider body{};
    body.source.ptr = &s;
    body.read_callback = Callbacks::read;
    nghttp2_submit_response(session_, s.id, headers.list.data(), headers.size,
                            last ? nullptr : &body);
}

void Session::go_away(std::int32_t last) {
    nghttp2_submit_goaway(session_, NGHTTP2_FLAG_NONE, last, NGHTTP2_NO_ERROR, nullptr, 0);
}

void Session::resume(Stream& s) {
    if (std::exchange(s.deferred_, false)) nghttp2_session_resume_data(session_, s.id);
}

void Session::write(Stream& s, std::string_view message) {
    append_framed(s.out_, message);
    resume(s);
}

void Session::write(Stream& s, const google::protobuf::MessageLite& message) {
    append_framed(s.out_, message);
    resume(s);
}

void Session::finish(Stream& s, std::vector<std::pair<std::string, std::string>> trailers) {
    s.complete_ = true;
    s.trailers_ = std::move(trailers);
    resume(s);
}

}  // namespace holdfast::etcd::wire
