#include "variants/broadcast.hpp"

#include <poll.h>

#include <utility>

#include "bench.hpp"

namespace holdfast::bench {

namespace {

constexpr const char* key = "bench/broadcast";
constexpr const char* release_and_tell =
    "if redis.call('GET',KEYS[1])==ARGV[1] then redis.call('DEL',KEYS[1]) "
    "redis.call('PUBLISH','bench/broadcast/free','') return 1 end return 0";

void send_all(redisContext* context) {
    int done = 0;
    while (done == 0)
        if (redisBufferWrite(context, &done) != REDIS_OK)
            throw SelfCheck(std::string("broadcast: ") + context->errstr);
}

}  // namespace

Broadcast::Broadcast(std::uint16_t port, std::size_t waiters) {
    for (std::size_t i = 0; i <= waiters; ++i) {
        One& one = all_.emplace_back();
        one.command = connect_redis(port);
        one.subscriber = connect_redis(port);
        ask(one.subscriber.get(), {"SUBSCRIBE", "bench/broadcast/free"});
    }
    const auto loaded = ask(all_.front().command.get(), {"SCRIPT", "LOAD", release_and_tell});
    if (loaded->type != REDIS_REPLY_STRING) throw SelfCheck("broadcast: SCRIPT LOAD was refused");
    sha_.assign(loaded->str, loaded->len);
    ask(all_.front().command.get(), {"DEL", key});
    for (One& one : all_)
        try_it(one);
}

void Broadcast::try_it(One& one) {
    one.state = State::trying;
    one.told = false;
    one.owner = "broadcast-" + std::to_string(++owners_);
    redisAppendCommand(one.command.get(), "SET %s %s NX PX 10000", key, one.owner.c_str());
    send_all(one.command.get());
    ++now_.requests;
}

void Broadcast::release(One& one) {
    one.state = State::releasing;
    turns_.let_go();
    redisAppendCommand(one.command.get(), "EVALSHA %s 1 %s %s", sha_.c_str(), key,
                       one.owner.c_str());
    send_all(one.command.get());
    ++now_.requests;
}

void Broadcast::on_reply(One& one, const redisReply& reply) {
    if (reply.type == REDIS_REPLY_ERROR)
        throw SelfCheck("broadcast: " + std::string(reply.str, reply.len));
    if (one.state == State::releasing) {
        if (reply.integer != 1) throw SelfCheck("broadcast: a release found another owner");
        try_it(one);
    } else if (reply.type == REDIS_REPLY_STATUS) {
        turns_.granted(&one, now_);
        release(one);
    } else if (one.told) {
        try_it(one);
    } else {
        one.state = State::waiting;
    }
}

void Broadcast::on_message(One& one) {
    ++now_.notifications;
    if (one.state == State::waiting)
        try_it(one);
    else
        one.told = true;
}

template <class Take>
void Broadcast::drain(redisContext* context, Take take) {
    if (redisBufferRead(context) != REDIS_OK)
        throw SelfCheck(std::string("broadcast: ") + context->errstr);
    for (;;) {
        void* raw = nullptr;
        if (redisGetReplyFromReader(context, &raw) != REDIS_OK)
            throw SelfCheck(std::string("broadcast: ") + context->errstr);
        if (raw == nullptr) return;
        const RedisReply reply(static_cast<redisReply*>(raw));
        take(*reply);
    }
}

BroadcastResult Broadcast::run_for(double seconds) {
    now_ = {};
    const auto start = Clock::now();
    std::vector<pollfd> fds;
    for (One& one : all_) {
        fds.push_back({one.command->fd, POLLIN, 0});
        fds.push_back({one.subscriber->fd, POLLIN, 0});
    }
    while (seconds_since(start) < seconds) {
        if (poll(fds.data(), fds.size(), 1000) == 0)
            throw SelfCheck("broadcast: everybody waits and nobody was told");
        for (std::size_t i = 0; i < fds.size(); ++i) {
            if (fds[i].revents == 0) continue;
            One& one = all_[i / 2];
            if (i % 2 == 0)
                drain(one.command.get(), [&](const redisReply& r) { on_reply(one, r); });
            else
                drain(one.subscriber.get(), [&](const redisReply&) { on_message(one); });
        }
    }
    now_.seconds = seconds_since(start);
    return std::exchange(now_, {});
}

}  // namespace holdfast::bench
