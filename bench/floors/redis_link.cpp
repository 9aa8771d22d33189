#include "floors/redis_link.hpp"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <array>

#include "bench.hpp"
#include "floors/trace.hpp"

namespace holdfast::bench {

namespace {

constexpr const char* loopback = "127.0.0.1";

class ClearLink final : public RedisLink {
public:
    explicit ClearLink(std::uint16_t port) : node_(connect_redis(port)) {}
    void add(std::string_view bytes) override {
        redisAppendFormattedCommand(node_.get(), bytes.data(), bytes.size());
    }
    void flush() override {
        for (int done = 0; done == 0;)
            if (redisBufferWrite(node_.get(), &done) != REDIS_OK) fail();
    }
    RedisReply reply() override {
        void* raw = nullptr;
        if (redisGetReply(node_.get(), &raw) != REDIS_OK) fail();
        return RedisReply(static_cast<redisReply*>(raw));
    }

private:
    [[noreturn]] void fail() const { throw SelfCheck(std::string("floor: ") + node_->errstr); }
    RedisContext node_;
};

/// hiredis connects and reads replies, OpenSSL is in between.
class TlsLink final : public RedisLink {
public:
    TlsLink(std::uint16_t port, const std::filesystem::path& ca_file)
        : node_(connect_redis(port)), context_(SSL_CTX_new(TLS_client_method())) {
        if (!context_ ||
            SSL_CTX_load_verify_locations(context_.get(), ca_file.c_str(), nullptr) != 1)
            fail();
        SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
        session_.reset(SSL_new(context_.get()));
        if (!session_ ||
            X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session_.get()), loopback) != 1 ||
            SSL_set_fd(session_.get(), node_->fd) != 1 || SSL_connect(session_.get()) != 1)
            fail();
    }
    void add(std::string_view bytes) override { out_.append(bytes); }
    void flush() override {
        std::size_t written = 0;
        if (SSL_write_ex(session_.get(), out_.data(), out_.size(), &written) != 1) fail();
        out_.clear();
    }
    RedisReply reply() override {
        for (;;) {
            void* raw = nullptr;
            if (redisReaderGetReply(node_->reader, &raw) != REDIS_OK)
                throw SelfCheck(std::string("floor: ") + node_->reader->errstr);
            if (raw != nullptr) return RedisReply(static_cast<redisReply*>(raw));
            std::size_t size = 0;
            if (SSL_read_ex(session_.get(), in_.data(), in_.size(), &size) != 1) fail();
            redisReaderFeed(node_->reader, in_.data(), size);
        }
    }

private:
    struct Free {
        void operator()(SSL_CTX* c) const { SSL_CTX_free(c); }
        void operator()(SSL* s) const { SSL_free(s); }
    };
    [[noreturn]] static void fail() {
        const char* const why = ERR_reason_error_string(ERR_get_error());
        throw SelfCheck(std::string("floor over TLS: ") + (why == nullptr ? "cut off" : why));
    }
    RedisContext node_;
    std::unique_ptr<SSL_CTX, Free> context_;
    std::unique_ptr<SSL, Free> session_;
    std::string out_;
    std::array<char, 16384> in_{};
};

}  // namespace

RedisContext connect_redis(std::uint16_t port) {
    RedisContext context(redisConnect(loopback, port));
    if (!context || context->err != 0)
        throw SelfCheck(std::string("bare hiredis: ") + (context ? context->errstr : "no memory"));
    timeval ten_seconds{10, 0};
    redisSetTimeout(context.get(), ten_seconds);
    return context;
}

std::unique_ptr<RedisLink> RedisLink::open(std::uint16_t port,
                                           const std::filesystem::path& ca_file) {
    if (ca_file.empty()) return std::make_unique<ClearLink>(port);
    return std::make_unique<TlsLink>(port, ca_file);
}

RedisReply RedisLink::ask(const std::vector<std::string>& arguments) {
    add(resp(arguments));
    flush();
    return reply();
}

}  // namespace holdfast::bench
