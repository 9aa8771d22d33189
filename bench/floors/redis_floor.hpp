// The raw floor for Redis and Redlock: a bare client, no thread, no queue, no option. It only
// writes bytes and looks at every reply.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "floors/redis_link.hpp"
#include "floors/trace.hpp"

namespace holdfast::bench {

/// Sends one command and returns its reply. Errors: SelfCheck when the connection broke.
RedisReply ask(redisContext*, const std::vector<std::string>& arguments);
/// Loads compare_and_delete and returns its SHA.
std::string load_compare_and_delete(redisContext*);
/// The same on each of these servers, over TLS if there is a file of an authority.
std::string load_compare_and_delete(const std::vector<std::uint16_t>& ports,
                                    const std::filesystem::path& ca_file = {});

/// Plays a trace; with several nodes the same bytes go to all of them before any reply is read, and
/// every node must agree. Which replies are a success is found out once: in the first pass each
/// request is followed by a look at the key, which must then be owned, and after the last request
/// must not be.
class RedisFloor {
public:
    /// Errors: SelfCheck when the first pass does not take and free the locks as it should.
    /// `ca_file`: as in RedisLink.
    RedisFloor(const std::vector<std::uint16_t>& ports, Trace trace,
               const std::filesystem::path& ca_file = {});
    /// One whole pass. Errors: SelfCheck at the first reply that is no success.
    void pass();
    std::size_t cycles() const { return trace_.cycles(); }
    std::size_t bytes() const;

private:
    /// What every reply in one place must look like; numbers that differ by nature are not
    /// compared.
    struct Shape {
        int type = 0;
        bool exact = false;
        long long integer = 0;
        std::string text;
        std::vector<Shape> elements;
    };
    static Shape shape_of(const redisReply&);
    static bool same(const Shape&, const redisReply&);
    void patch();
    void learn();
    void learn(RedisLink& node);
    void take_reply(RedisLink& node, std::size_t command);

    std::vector<std::unique_ptr<RedisLink>> nodes_;
    Trace trace_;
    std::vector<std::string> tags_;  // fresh owner ids of this pass
    std::vector<Shape> shapes_;
    std::size_t window_ = 1;
    std::uint64_t counter_ = 0;
};

}  // namespace holdfast::bench
