// A bare client's connection to Redis: bytes out, replies in. In clear by hiredis, over TLS by
// OpenSSL with its defaults; no thread, no queue, no option.
#pragma once
#include <hiredis/hiredis.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::bench {

struct FreeRedis {
    void operator()(redisContext* c) const { redisFree(c); }
    void operator()(redisReply* r) const { freeReplyObject(r); }
};
using RedisContext = std::unique_ptr<redisContext, FreeRedis>;
using RedisReply = std::unique_ptr<redisReply, FreeRedis>;

/// Connects in clear. Errors: SelfCheck.
RedisContext connect_redis(std::uint16_t port);

class RedisLink {
public:
    /// `ca_file`: of the authority to trust, over TLS; empty: in clear. Errors of all: SelfCheck.
    static std::unique_ptr<RedisLink> open(std::uint16_t port,
                                           const std::filesystem::path& ca_file = {});
    virtual ~RedisLink() = default;
    RedisLink(const RedisLink&) = delete;
    RedisLink& operator=(const RedisLink&) = delete;

    /// One command, kept until flush().
    virtual void add(std::string_view bytes) = 0;
    virtual void flush() = 0;
    virtual RedisReply reply() = 0;
    RedisReply ask(const std::vector<std::string>& arguments);

protected:
    RedisLink() = default;
};

}  // namespace holdfast::bench
