// A record in Redis that refuses the write of a holder whose lock went to somebody else while it
// was paused.
//   fenced_store_redis LOCK-URL STORE-HOST STORE-PORT
#include <hiredis/hiredis.h>

#include <cstdlib>
#include <holdfast/holdfast.hpp>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>

namespace {

// A script, since Redis runs it as one step: nobody writes between the comparison and the write.
constexpr const char* fenced_write = R"(
-- KEYS[1] = the record; ARGV[1] = token; ARGV[2] = value.  Tokens are compared as decimal text of equal
-- length, since they may not fit into Lua's numbers.
local last = redis.call('HGET', KEYS[1], 'fence') or '0'
local token = ARGV[1]
if #token < #last or (#token == #last and token < last) then return 0 end
redis.call('HSET', KEYS[1], 'fence', token, 'value', ARGV[2])
return 1
)";

class Record {
public:
    Record(const char* host, int port, std::string key)
        : redis_(redisConnect(host, port), redisFree), key_(std::move(key)) {
        if (!redis_) throw std::runtime_error("no memory for a connection");
        if (redis_->err != 0) throw std::runtime_error(redis_->errstr);
    }

    /// False: a later holder has written already.
    bool write(const std::string& value, holdfast::FencingToken token) {
        const auto number = std::to_string(token.value);
        const Reply reply(
            static_cast<redisReply*>(redisCommand(redis_.get(), "EVAL %s 1 %s %s %s", fenced_write,
                                                  key_.c_str(), number.c_str(), value.c_str())),
            freeReplyObject);
        if (!reply) throw std::runtime_error(redis_->errstr);
        if (reply->type != REDIS_REPLY_INTEGER) throw std::runtime_error(reply->str);
        return reply->integer == 1;
    }

private:
    using Reply = std::unique_ptr<redisReply, void (*)(void*)>;
    std::unique_ptr<redisContext, void (*)(redisContext*)> redis_;
    std::string key_;
};

void write(Record& record, const char* who, const char* value, const holdfast::Lease& lease) {
    const bool accepted = record.write(value, lease.fencing_token());
    std::cout << who << " writes '" << value << "' with token " << lease.fencing_token().value
              << (accepted ? ": accepted\n" : ": refused\n");
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 4) {
        std::cerr << "usage: fenced_store_redis LOCK-URL STORE-HOST STORE-PORT\n";
        return 64;
    }
    auto client = holdfast::Client::open(argv[1]).value();
    auto lock = client.make_lock("orders/42").value();
    Record record(argv[2], std::atoi(argv[3]), "record:42");

    auto first = lock->acquire().value();
    write(record, "the first holder", "packed", first);
    // Stands for a pause of the first holder: its lock ends, and the next one is granted.
    client.break_lock("orders/42", {.now = true}).value();
    auto second = lock->acquire().value();
    write(record, "the second holder", "paid", second);
    write(record, "the first holder, late,", "cancelled", first);
    write(record, "the second holder", "sent", second);
    return 0;
}
