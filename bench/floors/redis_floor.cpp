#include "floors/redis_floor.hpp"

#include <charconv>
#include <chrono>
#include <cstring>
#include <random>

#include "bench.hpp"

namespace holdfast::bench {

namespace {

constexpr std::size_t tag_size = 22;

/// Writes `number` in decimal over exactly `size` characters.
void write_digits(char* to, std::size_t size, long long number) {
    for (std::size_t i = size; i-- > 0; number /= 10)
        to[i] = static_cast<char>('0' + number % 10);
}

bool looks_like_a_number(const std::string& text) {
    return text.size() >= 6 && text.find_first_not_of("0123456789.-") == std::string::npos;
}

std::string words_of(const redisReply& reply) {
    if (reply.type == REDIS_REPLY_INTEGER) return std::to_string(reply.integer);
    if (reply.type == REDIS_REPLY_ARRAY && reply.elements > 0) return words_of(*reply.element[0]);
    return reply.str == nullptr ? "nil" : std::string(reply.str, reply.len);
}

std::string sha_of(const RedisReply& loaded) {
    if (loaded->type != REDIS_REPLY_STRING)
        throw SelfCheck("bare hiredis: SCRIPT LOAD was refused");
    return {loaded->str, loaded->len};
}

}  // namespace

RedisReply ask(redisContext* context, const std::vector<std::string>& arguments) {
    std::vector<const char*> argv;
    std::vector<std::size_t> sizes;
    for (const auto& a : arguments) {
        argv.push_back(a.data());
        sizes.push_back(a.size());
    }
    RedisReply reply(static_cast<redisReply*>(
        redisCommandArgv(context, static_cast<int>(argv.size()), argv.data(), sizes.data())));
    if (!reply) throw SelfCheck(std::string("bare hiredis: ") + context->errstr);
    return reply;
}

std::string load_compare_and_delete(redisContext* context) {
    return sha_of(ask(context, {"SCRIPT", "LOAD", compare_and_delete}));
}

std::string load_compare_and_delete(const std::vector<std::uint16_t>& ports,
                                    const std::filesystem::path& ca_file) {
    std::string sha;
    for (const auto port : ports)
        sha = sha_of(RedisLink::open(port, ca_file)->ask({"SCRIPT", "LOAD", compare_and_delete}));
    return sha;
}

RedisFloor::RedisFloor(const std::vector<std::uint16_t>& ports, Trace trace,
                       const std::filesystem::path& ca_file)
    : trace_(std::move(trace)), window_(trace_.window()) {
    for (const auto port : ports)
        nodes_.push_back(RedisLink::open(port, ca_file));
    if (trace_.commands.empty()) throw SelfCheck("floor: nothing was recorded to replay");
    counter_ = std::random_device{}();
    tags_.assign(trace_.grants.size(), std::string(tag_size, 'A'));
    learn();
    pass();
}

std::size_t RedisFloor::bytes() const {
    std::size_t sum = 0;
    for (const auto& command : trace_.commands)
        sum += command.bytes.size();
    return sum;
}

void RedisFloor::patch() {
    for (auto& tag : tags_)
        write_digits(tag.data(), tag_size, static_cast<long long>(++counter_));
    const auto now = std::chrono::duration_cast<std::chrono::microseconds>(
                         std::chrono::system_clock::now().time_since_epoch())
                         .count();
    for (auto& command : trace_.commands)
        for (const auto& p : command.patches) {
            char* to = command.bytes.data() + p.at;
            if (p.kind == Trace::Patch::Kind::owner)
                std::memcpy(to, tags_[p.owner].data(), tag_size);
            else if (p.kind == Trace::Patch::Kind::millis)
                write_digits(to, 13, now / 1000 + p.offset);
            else
                write_digits(to, 16, now + p.offset);
        }
}

void RedisFloor::learn() {
    patch();
    for (const auto& node : nodes_)
        learn(*node);
}

void RedisFloor::learn(RedisLink& node) {
    std::vector<bool> held(trace_.grants.size(), false);
    for (std::size_t i = 0; i < trace_.commands.size(); ++i) {
        const auto& command = trace_.commands[i];
        node.add(command.bytes);
        node.flush();
        const RedisReply reply = node.reply();
        if (reply->type == REDIS_REPLY_ERROR) throw SelfCheck("floor: " + words_of(*reply));
        if (i == shapes_.size()) shapes_.push_back(shape_of(*reply));
        for (const std::size_t owner : command.owners) {
            const auto value = node.ask({"GET", trace_.grants[owner].name});
            const bool ours = value->type == REDIS_REPLY_STRING && value->len >= tag_size &&
                              tags_[owner].compare(0, tag_size, value->str, tag_size) == 0;
            if (ours == held[owner])
                throw SelfCheck("floor: request " + std::to_string(i + 1) +
                                (ours ? " did not free " : " did not take ") +
                                trace_.grants[owner].name + " (reply: " + words_of(*reply) + ")");
            held[owner] = ours;
        }
    }
    for (std::size_t owner = 0; owner < held.size(); ++owner)
        if (held[owner]) throw SelfCheck("floor: " + trace_.grants[owner].name + " stays held");
}

RedisFloor::Shape RedisFloor::shape_of(const redisReply& reply) {
    Shape shape;
    shape.type = reply.type;
    if (reply.type == REDIS_REPLY_INTEGER) {
        shape.integer = reply.integer;
        shape.exact = reply.integer >= -2 && reply.integer <= 9;
    } else if (reply.type == REDIS_REPLY_STRING || reply.type == REDIS_REPLY_STATUS) {
        shape.text.assign(reply.str, reply.len);
        // A long text may be an owner id or a token, which differ by nature.
        shape.exact = shape.text.size() <= 16 && !looks_like_a_number(shape.text);
    } else if (reply.type == REDIS_REPLY_ARRAY) {
        for (std::size_t i = 0; i < reply.elements; ++i)
            shape.elements.push_back(shape_of(*reply.element[i]));
    }
    return shape;
}

bool RedisFloor::same(const Shape& shape, const redisReply& reply) {
    if (shape.type != reply.type) return false;
    if (shape.type == REDIS_REPLY_ARRAY) {
        if (shape.elements.size() != reply.elements) return false;
        for (std::size_t i = 0; i < reply.elements; ++i)
            if (!same(shape.elements[i], *reply.element[i])) return false;
        return true;
    }
    if (!shape.exact) return true;
    if (shape.type == REDIS_REPLY_INTEGER) return shape.integer == reply.integer;
    return std::string_view(shape.text) == std::string_view(reply.str, reply.len);
}

void RedisFloor::take_reply(RedisLink& node, std::size_t command) {
    const RedisReply reply = node.reply();
    if (!same(shapes_[command], *reply))
        throw SelfCheck("floor: the reply to request " + std::to_string(command + 1) +
                        " was no success: " + words_of(*reply));
}

void RedisFloor::pass() {
    patch();
    for (std::size_t first = 0; first < trace_.commands.size(); first += window_) {
        const std::size_t end = std::min(first + window_, trace_.commands.size());
        for (const auto& node : nodes_) {
            for (std::size_t i = first; i < end; ++i)
                node->add(trace_.commands[i].bytes);
            node->flush();
        }
        for (const auto& node : nodes_)
            for (std::size_t i = first; i < end; ++i)
                take_reply(*node, i);
    }
}

}  // namespace holdfast::bench
