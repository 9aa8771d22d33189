// Messages of gRPC in the data of a stream, and what both ends do with nghttp2 in the same way.
#pragma once

#include <nghttp2/nghttp2.h>

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "holdfast/lab/error.hpp"

namespace holdfast::lab {

/// A flag for compression, the length, the bytes.
inline std::string grpc_framed(std::string_view message) {
    const auto size = static_cast<std::uint32_t>(message.size());
    std::string out{'\0', static_cast<char>(size >> 24U), static_cast<char>(size >> 16U),
                    static_cast<char>(size >> 8U), static_cast<char>(size)};
    return out.append(message);
}

/// Data that has come, and the messages that are whole.
class GrpcMessages {
public:
    void add(std::string_view bytes) { bytes_ += bytes; }
    bool empty() const { return bytes_.empty(); }
    /// Errors: LabError for a compressed one, which nobody asked for.
    std::optional<std::string> next() {
        constexpr std::size_t prefix = 5;
        if (bytes_.size() < prefix) {
            return std::nullopt;
        }
        if (bytes_[0] != 0) {
            throw LabError("gRPC: a compressed message");
        }
        std::size_t size = 0;
        for (std::size_t i = 1; i < prefix; ++i) {
            size = size << 8U | static_cast<unsigned char>(bytes_[i]);
        }
        if (bytes_.size() < prefix + size) {
            return std::nullopt;
        }
        std::string out = bytes_.substr(prefix, size);
        bytes_.erase(0, prefix + size);
        return out;
    }

private:
    std::string bytes_;
};

/// Data on its way out. It waits for the stream's window.
struct GrpcOutput {
    std::string bytes = {};
    std::size_t sent = 0;

    std::size_t copy(std::uint8_t* to, std::size_t most) {
        const std::size_t count = bytes.copy(reinterpret_cast<char*>(to), most, sent);
        sent += count;
        if (sent == bytes.size()) {
            bytes.clear();
            sent = 0;
        }
        return count;
    }
};

/// Both must outlive the call that they are given to.
inline nghttp2_nv grpc_header(std::string_view name, std::string_view value) {
    const auto raw = [](std::string_view text) {
        return const_cast<std::uint8_t*>(reinterpret_cast<const std::uint8_t*>(text.data()));
    };
    return {raw(name), raw(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE};
}

inline std::string_view grpc_text(const std::uint8_t* bytes, std::size_t size) {
    return {reinterpret_cast<const char*>(bytes), size};
}

inline void grpc_check(long result) {
    if (result < 0) {
        throw LabError(std::string("HTTP/2: ") + ::nghttp2_strerror(static_cast<int>(result)));
    }
}

/// There is more to send on a stream, or it is complete.
inline void grpc_resume(nghttp2_session* session, std::int32_t stream) {
    const int result = ::nghttp2_session_resume_data(session, stream);
    if (result != NGHTTP2_ERR_INVALID_ARGUMENT) {  // it has not run out of data yet
        grpc_check(result);
    }
}

/// One end of a connection, and its settings.
class GrpcSession {
public:
    using Settings = std::initializer_list<nghttp2_settings_entry>;
    /// `make`: nghttp2's function for that end. `set`: sets the callbacks, which get `user`.
    template <class Make, class Set>
    GrpcSession(Make make, void* user, Settings settings, Set set) {
        nghttp2_session_callbacks* callbacks = nullptr;
        grpc_check(::nghttp2_session_callbacks_new(&callbacks));
        set(callbacks);
        const int made = make(&session_, callbacks, user);
        ::nghttp2_session_callbacks_del(callbacks);
        grpc_check(made);
        grpc_check(::nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings.begin(),
                                             settings.size()));
    }
    GrpcSession(const GrpcSession&) = delete;
    GrpcSession& operator=(const GrpcSession&) = delete;
    ~GrpcSession() { ::nghttp2_session_del(session_); }
    operator nghttp2_session*() const { return session_; }

    void receive(std::string_view bytes) {
        grpc_check(::nghttp2_session_mem_recv(
            session_, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()));
    }
    /// All that it has to send.
    std::string output() {
        std::string out;
        for (;;) {
            const std::uint8_t* bytes = nullptr;
            const auto size = ::nghttp2_session_mem_send(session_, &bytes);
            grpc_check(size);
            if (size == 0) {
                return out;
            }
            out += grpc_text(bytes, static_cast<std::size_t>(size));
        }
    }

private:
    nghttp2_session* session_ = nullptr;
};

}  // namespace holdfast::lab
