#include "client.hpp"

#include <charconv>
#include <utility>

namespace holdfast::etcd::wire {
namespace {

using std::string_view_literals::operator""sv;

constexpr std::chrono::milliseconds longest_timeout{99'999'999};  // eight digits, as gRPC has it

template <class Number>
Number number_in(std::string_view text, Number otherwise) {
    Number n{};
    const auto read = std::from_chars(text.data(), text.data() + text.size(), n);
    return read.ec == std::errc() && read.ptr == text.data() + text.size() ? n : otherwise;
}

}  // namespace

struct Client::Stream final : wire::Stream {
    Call* call = nullptr;  ///< null: it was cancelled
    End end;
    bool grpc = false;  ///< the content type says so
    std::string type;
};

Client::Client(std::string authority, bool tls)
    : Session(Role::client), authority_(std::move(authority)), tls_(tls) {}
Client::~Client() = default;

Client::Id Client::call(const Request& r, const google::protobuf::MessageLite& message, Call& c) {
    auto made = std::make_unique<Stream>();
    made->call = &c;
    made->longest = r.longest;
    std::array<char, 16> timeout{};
    char* end = timeout.data();
    if (r.timeout.count() > 0) {
        end = std::to_chars(end, end + 10, std::min(r.timeout, longest_timeout).count()).ptr;
        *end++ = 'm';
    }
    const std::string_view limit(timeout.data(), static_cast<std::size_t>(end - timeout.data()));
    auto& s = begin(std::move(made), {{":method", "POST"},
                                      {":scheme", tls_ ? "https"sv : "http"sv},
                                      {":path", r.path},
                                      {":authority", authority_},
                                      {"te", "trailers"},
                                      {"content-type", "application/grpc"},
                                      {"grpc-timeout", limit, false},
                                      {"authorization", r.token}});
    write(s, message);
    if (!r.stays_open) finish(s);
    return s.id;
}

void Client::cancel(Id id) noexcept {
    const auto at = streams().find(id);
    if (at == streams().end() || at->second->closed) return;
    at->second->closed = true;
    static_cast<Stream&>(*at->second).call = nullptr;
    reset(*at->second);
}

bool Client::begun(Id id) const noexcept {
    const auto at = streams().find(id);
    return at != streams().end() && at->second->begun;
}

void Client::broke(const std::string& why) {
    open_ = false;
    fail(why);
    while (!streams().empty())
        drop(streams().begin()->first);
}

void Client::header(wire::Stream& one, std::string_view name, std::string_view value) {
    auto& s = static_cast<Stream&>(one);
    if (name == ":status") s.end.http = number_in(value, 0U);
    if (name == "content-type") {
        s.grpc = value.starts_with("application/grpc");
        if (!s.grpc) s.type = value;
    }
    if (name == "grpc-status") s.end.status = number_in(value, 2);  // 2: what is not known
    if (name == "grpc-message") s.end.words = percent_decoded(value);
}

void Client::headed(wire::Stream&, bool) {}

void Client::message(wire::Stream& one, std::string_view bytes) {
    auto& s = static_cast<Stream&>(one);
    if (s.call != nullptr && s.grpc && s.end.http == 200) s.call->message(bytes);
}

void Client::refuse(wire::Stream& one, std::string why) {
    auto& s = static_cast<Stream&>(one);
    s.end.by = End::By::too_long;
    s.end.words = std::move(why);
    s.end.status = -1;
    reset(one);
}

void Client::closed(wire::Stream& one, std::uint32_t code) {
    auto& s = static_cast<Stream&>(one);
    if (s.call == nullptr) return;
    using enum End::By;
    if (s.end.by == too_long) {
    } else if (!s.begun || code == NGHTTP2_REFUSED_STREAM) {
        s.end.by = unprocessed;
        s.end.words = trouble().empty() ? "the call was refused" : trouble();
    } else if (s.end.status >= 0) {
        s.end.by = status;
    } else if (s.end.http != 0 && (s.end.http != 200 || !s.grpc)) {
        s.end.by = foreign;
        s.end.words = "HTTP status " + std::to_string(s.end.http) +
                      (s.type.empty() ? "" : ", " + s.type.substr(0, 80));
    } else {
        s.end.by = broken;
        s.end.words = !trouble().empty() ? trouble() : nghttp2_http2_strerror(code);
    }
    s.call->ended(s.end);
}

}  // namespace holdfast::etcd::wire
