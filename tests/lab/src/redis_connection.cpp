// hiredis serves as the codec only. Its own sockets raise SIGPIPE, and its time-outs leave a
// connection unusable, while a test must be able to go on waiting.
#include "holdfast/lab/redis_connection.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <hiredis/hiredis.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "holdfast/lab/error.hpp"

namespace holdfast::lab {
namespace {

using Clock = std::chrono::steady_clock;

Reply converted(const redisReply& raw) {
    Reply reply;
    switch (raw.type) {
        case REDIS_REPLY_STATUS:
            reply.type = Reply::Type::status;
            reply.text.assign(raw.str, raw.len);
            break;
        case REDIS_REPLY_ERROR:
            reply.type = Reply::Type::error;
            reply.text.assign(raw.str, raw.len);
            break;
        case REDIS_REPLY_INTEGER:
            reply.type = Reply::Type::integer;
            reply.integer = raw.integer;
            break;
        case REDIS_REPLY_STRING:
            reply.type = Reply::Type::bulk;
            reply.text.assign(raw.str, raw.len);
            break;
        case REDIS_REPLY_ARRAY:
            reply.type = Reply::Type::array;
            for (std::size_t i = 0; i < raw.elements; ++i) {
                reply.elements.push_back(converted(*raw.element[i]));
            }
            break;
        default:
            break;
    }
    return reply;
}

// Waits until the socket is ready for `events` or `end` is reached; false in the latter case.
bool wait_ready(int fd, short events, Clock::time_point end) {
    for (;;) {
        const auto left =
            std::chrono::duration_cast<std::chrono::nanoseconds>(end - Clock::now()).count();
        const long long rest = left > 0 ? left : 0;
        timespec time{};
        time.tv_sec = rest / 1'000'000'000;
        time.tv_nsec = rest % 1'000'000'000;
        pollfd entry{fd, events, 0};
        const int ready = ::ppoll(&entry, 1, &time, nullptr);
        if (ready > 0) {
            return true;
        }
        if (ready == 0 || errno != EINTR) {
            return false;
        }
    }
}

int connected_socket(const std::string& host, std::uint16_t port, Clock::time_point end) {
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    const int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
    if (error != 0) {
        throw LabError(fmt::format("cannot resolve {}: {}", host, ::gai_strerror(error)));
    }
    const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, ::freeaddrinfo);
    std::string reason = "no address";
    for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
        const int fd = ::socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0) {
            reason = std::strerror(errno);
            continue;
        }
        int result = ::connect(fd, one->ai_addr, one->ai_addrlen) == 0 ? 0 : errno;
        if (result == EINPROGRESS) {
            socklen_t size = sizeof result;
            if (!wait_ready(fd, POLLOUT, end)) {
                result = ETIMEDOUT;
            } else {
                ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &result, &size);
            }
        }
        if (result == 0) {
            const int on = 1;
            ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
            return fd;
        }
        ::close(fd);
        reason = std::strerror(result);
    }
    throw LabError(fmt::format("cannot connect to {}:{}: {}", host, port, reason));
}

}  // namespace

class RedisConnection::Impl {
public:
    Impl(const std::string& host, std::uint16_t port, std::chrono::nanoseconds cap)
        : peer_(fmt::format("{}:{}", host, port)),
          reader_(::redisReaderCreate(), ::redisReaderFree),
          fd_(connected_socket(host, port, Clock::now() + cap)) {}

    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;
    ~Impl() { ::close(fd_); }

    void send(const std::vector<std::string>& arguments) {
        std::vector<const char*> words;
        std::vector<std::size_t> sizes;
        for (const auto& argument : arguments) {
            words.push_back(argument.data());
            sizes.push_back(argument.size());
        }
        char* raw = nullptr;
        const auto size = ::redisFormatCommandArgv(&raw, static_cast<int>(words.size()),
                                                   words.data(), sizes.data());
        if (size < 0) {
            throw LabError("cannot format a Redis command");
        }
        const std::unique_ptr<char, void (*)(char*)> owner(
            raw, [](char* command) { ::redisFreeCommand(command); });
        write(raw, static_cast<std::size_t>(size));
    }

    std::optional<Reply> receive(std::chrono::nanoseconds cap) {
        const auto end = Clock::now() + cap;
        for (;;) {
            void* raw = nullptr;
            if (::redisReaderGetReply(reader_.get(), &raw) != REDIS_OK) {
                throw LabError(fmt::format("{} sent something that is not RESP: {}", peer_,
                                           static_cast<const char*>(reader_->errstr)));
            }
            if (raw != nullptr) {
                const std::unique_ptr<void, void (*)(void*)> owner(raw, ::freeReplyObject);
                return converted(*static_cast<const redisReply*>(raw));
            }
            if (!wait_ready(fd_, POLLIN, end)) {
                return std::nullopt;
            }
            char buffer[16384];
            const auto count = ::recv(fd_, buffer, sizeof buffer, 0);
            if (count == 0) {
                throw LabError(peer_ + " closed the connection");
            }
            if (count > 0) {
                ::redisReaderFeed(reader_.get(), buffer, static_cast<std::size_t>(count));
            } else if (errno != EAGAIN && errno != EINTR) {
                throw LabError(
                    fmt::format("the connection to {} broke: {}", peer_, std::strerror(errno)));
            }
        }
    }

    const std::string& peer() const { return peer_; }

private:
    void write(const char* data, std::size_t size) {
        const auto end = Clock::now() + default_cap;
        while (size > 0) {
            const auto sent = ::send(fd_, data, size, MSG_NOSIGNAL);
            if (sent > 0) {
                data += sent;
                size -= static_cast<std::size_t>(sent);
            } else if (errno == EAGAIN) {
                if (!wait_ready(fd_, POLLOUT, end)) {
                    throw LabError(peer_ + " does not take a command");
                }
            } else if (errno != EINTR) {
                throw LabError(
                    fmt::format("the connection to {} broke: {}", peer_, std::strerror(errno)));
            }
        }
    }

    std::string peer_;
    std::unique_ptr<redisReader, void (*)(redisReader*)> reader_;
    int fd_;
};

RedisConnection::RedisConnection(const std::string& host, std::uint16_t port,
                                 std::chrono::nanoseconds cap)
    : impl_(std::make_unique<Impl>(host, port, cap)) {}
RedisConnection::RedisConnection(RedisConnection&&) noexcept = default;
RedisConnection& RedisConnection::operator=(RedisConnection&&) noexcept = default;
RedisConnection::~RedisConnection() = default;

Reply RedisConnection::command(const std::vector<std::string>& arguments,
                               std::chrono::nanoseconds cap) {
    impl_->send(arguments);
    auto reply = impl_->receive(cap);
    if (!reply) {
        throw LabError(fmt::format("no answer from {} to {}", impl_->peer(),
                                   arguments.empty() ? std::string() : arguments.front()));
    }
    return std::move(*reply);
}

void RedisConnection::send(const std::vector<std::string>& arguments) {
    impl_->send(arguments);
}

std::optional<Reply> RedisConnection::receive(std::chrono::nanoseconds cap) {
    return impl_->receive(cap);
}

std::string to_string(const Reply& reply) {
    switch (reply.type) {
        case Reply::Type::status:
            return reply.text;
        case Reply::Type::error:
            return "(error) " + reply.text;
        case Reply::Type::integer:
            return "(integer) " + std::to_string(reply.integer);
        case Reply::Type::bulk:
            return '"' + reply.text + '"';
        case Reply::Type::nil:
            return "(nil)";
        case Reply::Type::array:
            break;
    }
    std::string text = "[";
    for (const auto& element : reply.elements) {
        text += (text.size() > 1 ? ", " : "") + to_string(element);
    }
    return text + "]";
}

}  // namespace holdfast::lab
