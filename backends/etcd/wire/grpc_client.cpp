#include "grpc_client.hpp"

#include <google/protobuf/message_lite.h>
#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <utility>

#include "holdfast/spi/net/percent.hpp"

namespace holdfast::etcd::wire {
namespace {

constexpr std::size_t frame_head = 5;         // gRPC's: compressed or not, and four bytes of length
constexpr std::uint32_t window = 16U << 20U;  // twice the longest message: its sender never waits
constexpr std::size_t most_spare = 64, most_kept = 64U << 10U;
constexpr std::chrono::milliseconds longest_timeout{99'999'999};  // eight digits, as gRPC has it

void frame(std::string& out, const google::protobuf::MessageLite& message) {
    const std::size_t size = message.ByteSizeLong();
    out.resize(frame_head + size);
    for (std::size_t i = 1; i < frame_head; ++i)
        out[i] = static_cast<char>(size >> 8U * (frame_head - 1 - i) & 255U);
    message.SerializeWithCachedSizesToArray(
        reinterpret_cast<std::uint8_t*>(out.data() + frame_head));
}

std::size_t size_in(const char* head) {
    std::size_t size = 0;
    for (std::size_t i = 1; i < frame_head; ++i)
        size = size << 8U | static_cast<unsigned char>(head[i]);
    return size;
}

std::string_view text_of(const std::uint8_t* bytes, std::size_t size) {
    return {reinterpret_cast<const char*>(bytes), size};
}

/// nghttp2 reads it when the frame is written, and copies what it keeps.
nghttp2_nv header_of(std::string_view name, std::string_view value,
                     unsigned flags = NGHTTP2_NV_FLAG_NONE) {
    const auto bytes = [](std::string_view s) {
        return reinterpret_cast<std::uint8_t*>(const_cast<char*>(s.data()));
    };
    return {bytes(name), bytes(value), name.size(), value.size(), static_cast<std::uint8_t>(flags)};
}

/// A server begins with its settings. No other protocol's first bytes look like that.
bool begins_http2(std::string_view bytes) {
    constexpr std::size_t type = 3;
    return bytes.size() <= type || bytes[type] == NGHTTP2_SETTINGS;
}

template <class Number>
Number number_in(std::string_view text, Number otherwise) {
    Number n{};
    const auto read = std::from_chars(text.data(), text.data() + text.size(), n);
    return read.ec == std::errc() && read.ptr == text.data() + text.size() ? n : otherwise;
}

}  // namespace

struct Client::Stream {
    Id id = 0;
    Call* call = nullptr;  ///< null: it was cancelled
    std::size_t longest = 0;
    bool stays_open = false, begun = false;
    std::string out;  ///< what is to be sent
    std::size_t sent = 0;
    std::string in;  ///< the beginning of a message
    End end;
    bool grpc = false;  ///< the content type says so
    std::string type;   ///< ... or something else
};

// --- what nghttp2 calls

struct Client::Callbacks {
    static Client& of(void* user) { return *static_cast<Client*>(user); }
    static Stream* stream(nghttp2_session* s, Id id) {
        return static_cast<Stream*>(nghttp2_session_get_stream_user_data(s, id));
    }

    /// Nothing may be thrown through C: the connection ends instead.
    template <class F>
    static int safely(F f) noexcept {
        try {
            f();
            return 0;
        } catch (const std::exception&) {
            return NGHTTP2_ERR_CALLBACK_FAILURE;
        }
    }

    static int header(nghttp2_session* s, const nghttp2_frame* f, const std::uint8_t* name,
                      std::size_t name_size, const std::uint8_t* value, std::size_t value_size,
                      std::uint8_t, void* user) {
        return safely([&] {
            if (Stream* const one = stream(s, f->hd.stream_id))
                of(user).header(*one, text_of(name, name_size), text_of(value, value_size));
        });
    }

    static int frame(nghttp2_session*, const nghttp2_frame* f, void* user) {
        if (f->hd.type == NGHTTP2_GOAWAY) of(user).open_ = false;
        return 0;
    }

    static int data(nghttp2_session* s, std::uint8_t, Id id, const std::uint8_t* bytes,
                    std::size_t size, void* user) {
        return safely([&] {
            if (Stream* const one = stream(s, id)) of(user).take(*one, text_of(bytes, size));
        });
    }

    static int close(nghttp2_session*, Id id, std::uint32_t code, void* user) {
        return safely([&] { of(user).over(id, code); });
    }

    static int before_send(nghttp2_session* s, const nghttp2_frame* f, void*) {
        if (f->hd.type != NGHTTP2_HEADERS) return 0;
        if (Stream* const one = stream(s, f->hd.stream_id)) one->begun = true;
        return 0;
    }

    static ssize_t read(nghttp2_session*, Id, std::uint8_t* to, std::size_t size,
                        std::uint32_t* flags, nghttp2_data_source* source, void*) {
        Stream& one = *static_cast<Stream*>(source->ptr);
        const std::size_t n = std::min(size, one.out.size() - one.sent);
        std::memcpy(to, one.out.data() + one.sent, n);
        one.sent += n;
        if (one.sent == one.out.size() && !one.stays_open) *flags |= NGHTTP2_DATA_FLAG_EOF;
        if (n == 0 && one.stays_open) return NGHTTP2_ERR_DEFERRED;
        return static_cast<ssize_t>(n);
    }
};

// --- the session

Client::Client(std::string authority, bool tls) : authority_(std::move(authority)), tls_(tls) {
    nghttp2_session_callbacks* all = nullptr;
    nghttp2_session_callbacks_new(&all);
    nghttp2_session_callbacks_set_on_header_callback(all, Callbacks::header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(all, Callbacks::frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(all, Callbacks::data);
    nghttp2_session_callbacks_set_on_stream_close_callback(all, Callbacks::close);
    nghttp2_session_callbacks_set_before_frame_send_callback(all, Callbacks::before_send);
    nghttp2_mem memory = pool_.functions();
    nghttp2_session_client_new3(&session_, all, this, nullptr, &memory);
    nghttp2_session_callbacks_del(all);
    const nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, window},
                                               {NGHTTP2_SETTINGS_ENABLE_PUSH, 0}};
    nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings, std::size(settings));
    nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0, window);
}

Client::~Client() {
    nghttp2_session_del(session_);
}

void Client::fail(std::string_view why) {
    if (trouble_.empty()) trouble_ = why;
}

bool Client::receive(std::string_view bytes) {
    if (!std::exchange(heard_, true) && !begins_http2(bytes)) {
        foreign_ = true;
        fail(bytes.starts_with("HTTP/")
                 ? "it answers in " + std::string(bytes.substr(0, bytes.find_first_of("\r\n")))
                 : "it does not speak HTTP/2");
    }
    if (!trouble_.empty()) return false;
    const auto* at = reinterpret_cast<const std::uint8_t*>(bytes.data());
    const ssize_t n = nghttp2_session_mem_recv(session_, at, bytes.size());
    if (n < 0) fail(nghttp2_strerror(static_cast<int>(n)));
    check();
    return trouble_.empty();
}

void Client::send(std::string& out) {
    for (;;) {
        const std::uint8_t* bytes = nullptr;
        const ssize_t n = nghttp2_session_mem_send(session_, &bytes);
        if (n < 0) fail(nghttp2_strerror(static_cast<int>(n)));
        if (n <= 0) return check();
        out += text_of(bytes, static_cast<std::size_t>(n));
    }
}

void Client::check() {
    if (nghttp2_session_want_read(session_) == 0 && nghttp2_session_want_write(session_) == 0)
        fail("HTTP/2 was ended");
}

void Client::broke(const std::string& why) {
    fail(why);
    while (!streams_.empty())
        over(streams_.begin()->first, NGHTTP2_CANCEL);
}

// --- calls

std::unique_ptr<Client::Stream> Client::make_stream() {
    if (spare_.empty()) return std::make_unique<Stream>();
    auto one = std::move(spare_.back());
    spare_.pop_back();
    return one;
}

Client::Id Client::call(const Request& r, const google::protobuf::MessageLite& message, Call& c) {
    auto made = make_stream();
    Stream& s = *made;
    s.call = &c;
    s.longest = r.longest;
    s.stays_open = r.stays_open;
    frame(s.out, message);
    std::array<char, 16> timeout{};
    char* end = timeout.data();
    if (r.timeout.count() > 0) {
        end = std::to_chars(end, end + 10, std::min(r.timeout, longest_timeout).count()).ptr;
        *end++ = 'm';
    }
    std::array<nghttp2_nv, 8> headers{
        header_of(":method", "POST"), header_of(":scheme", tls_ ? "https" : "http"),
        header_of(":path", r.path),   header_of(":authority", authority_),
        header_of("te", "trailers"),  header_of("content-type", "application/grpc")};
    std::size_t n = 6;
    if (end != timeout.data())  // another one each time: no table of HPACK's keeps it
        headers.at(n++) = header_of(
            "grpc-timeout", {timeout.data(), static_cast<std::size_t>(end - timeout.data())},
            NGHTTP2_NV_FLAG_NO_INDEX);
    if (!r.token.empty()) headers.at(n++) = header_of("authorization", r.token);
    streams_.reserve(streams_.size() + 1);  // nothing may be thrown once nghttp2 has its address
    nghttp2_data_provider body{};
    body.source.ptr = &s;
    body.read_callback = Callbacks::read;
    s.id = nghttp2_submit_request(session_, nullptr, headers.data(), n, &body, &s);
    if (s.id < 0) fail(nghttp2_strerror(s.id));  // no numbers are left
    const Id id = s.id;
    streams_[id] = std::move(made);
    return id;
}

void Client::cancel(Id id) noexcept {
    const auto at = streams_.find(id);
    if (at == streams_.end() || at->second->call == nullptr) return;
    at->second->call = nullptr;
    reset(*at->second);
}

void Client::reset(const Stream& s) noexcept {
    nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, s.id, NGHTTP2_CANCEL);
}

bool Client::begun(Id id) const noexcept {
    const auto at = streams_.find(id);
    return at != streams_.end() && at->second->begun;
}

void Client::header(Stream& s, std::string_view name, std::string_view value) {
    if (name == ":status") s.end.http = number_in(value, 0U);
    if (name == "content-type") {
        s.grpc = value.starts_with("application/grpc");
        if (!s.grpc) s.type = value.substr(0, 80);
    }
    if (name == "grpc-status") s.end.status = number_in(value, 2);  // 2: what is not known
    if (name == "grpc-message") s.end.words = spi::net::read_escapes(value);
}

void Client::refuse(Stream& s, std::string why) {
    s.end.by = End::By::unreadable;
    s.end.words = std::move(why);
    reset(s);
}

void Client::take(Stream& s, std::string_view bytes) {
    const bool read = s.grpc && s.end.http == 200;
    std::string& in = s.in;
    while (read && s.call != nullptr && s.end.by != End::By::unreadable && !bytes.empty()) {
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
        if (head[0] != 0) return refuse(s, "a message is compressed");
        if (size > s.longest)
            return refuse(s, "an answer of more than " + std::to_string(s.longest >> 20U) + " MiB");
        if (whole_head && bytes.size() >= frame_head + size) {
            s.call->message(bytes.substr(frame_head, size));
            bytes.remove_prefix(frame_head + size);
            continue;
        }
        if (!more(frame_head + size)) return;
        s.call->message(std::string_view(in).substr(frame_head));
        in.clear();
    }
}

void Client::over(Id id, std::uint32_t code) {
    const auto at = streams_.find(id);
    if (at == streams_.end()) return;
    auto one = std::move(at->second);
    streams_.erase(at);
    Stream& s = *one;
    End& end = s.end;
    using enum End::By;
    if (end.by == unreadable) {
    } else if (!s.begun || code == NGHTTP2_REFUSED_STREAM) {
        end.by = unprocessed;
        end.words = trouble_.empty() ? "the call was refused" : trouble_;
    } else if (foreign_ || (end.http != 0 && (end.http != 200 || !s.grpc))) {
        end.by = foreign;
        end.words = foreign_ ? trouble_ : "HTTP status " + std::to_string(end.http);
        if (!s.type.empty()) end.words += ", " + s.type;
    } else if (end.status >= 0) {
        end.by = status;
    } else {
        end.words = trouble_.empty() ? nghttp2_http2_strerror(code) : trouble_;
    }
    if (s.call != nullptr) s.call->ended(end);
    if (spare_.size() == most_spare || s.in.capacity() + s.out.capacity() > most_kept) return;
    s.in.clear();
    s.sent = 0;
    s.begun = s.grpc = false;
    s.type.clear();
    s.end = {};
    spare_.push_back(std::move(one));
}

}  // namespace holdfast::etcd::wire
