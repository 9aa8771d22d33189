// hiredis serves as the codec only. Its own sockets raise SIGPIPE, and its time-outs leave a
// connection unusable, while a test must be able to go on waiting.
#include "holdfast/lab/redis_connection.hpp"

#include <fmt/format.h>
#include <hiredis/hiredis.h>

#include <utility>

#include "holdfast/lab/error.hpp"
#include "stream_socket.hpp"

namespace holdfast::lab {
namespace {

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

}  // namespace

class RedisConnection::Impl {
public:
    Impl(const std::string& host, std::uint16_t port, std::chrono::nanoseconds cap)
        : socket_(host, port, cap), reader_(::redisReaderCreate(), ::redisReaderFree) {}

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
        socket_.write({raw, static_cast<std::size_t>(size)});
    }

    std::optional<Reply> receive(std::chrono::nanoseconds cap) {
        const auto end = StreamSocket::Clock::now() + cap;
        for (;;) {
            void* raw = nullptr;
            if (::redisReaderGetReply(reader_.get(), &raw) != REDIS_OK) {
                throw LabError(fmt::format("{} sent something that is not RESP: {}", peer(),
                                           static_cast<const char*>(reader_->errstr)));
            }
            if (raw != nullptr) {
                const std::unique_ptr<void, void (*)(void*)> owner(raw, ::freeReplyObject);
                return converted(*static_cast<const redisReply*>(raw));
            }
            char buffer[16384];
            const auto bytes = socket_.read(buffer, sizeof buffer, end);
            if (bytes.empty()) {
                return std::nullopt;
            }
            ::redisReaderFeed(reader_.get(), bytes.data(), bytes.size());
        }
    }

    const std::string& peer() const { return socket_.peer(); }

private:
    StreamSocket socket_;
    std::unique_ptr<redisReader, void (*)(redisReader*)> reader_;
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
