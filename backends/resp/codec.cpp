// hiredis 0.14 checks neither the end of a bulk text nor any length, so both are done here. Its
// formatters take half of the instructions of a blocking cycle, so commands are written here too
// (docs/adr/0012-commands-without-hiredis.md).
#include "codec.hpp"

#include <hiredis/hiredis.h>

#include <algorithm>
#include <charconv>
#include <new>

namespace holdfast::resp {
namespace {

constexpr std::size_t most_elements = 200'000;  // of one reply, all its arrays together
constexpr int most_nested = 7;                  // hiredis 1.0 and newer set no limit

struct Root {
    Reply reply;
    std::size_t elements = 0;
};

Reply& place_of(const redisReadTask* task) {
    if (task->parent == nullptr) {
        auto* root = static_cast<Root*>(task->privdata);
        root->elements = 0;
        return root->reply;
    }
    return static_cast<Reply*>(task->parent->obj)->elements[static_cast<std::size_t>(task->idx)];
}

// A null pointer makes the reader fail for good, which is wanted for every kind of nonsense.
void* make_string(const redisReadTask* task, char* text, std::size_t size) noexcept {
    try {
        const bool known = task->type == REDIS_REPLY_STATUS || task->type == REDIS_REPLY_ERROR ||
                           task->type == REDIS_REPLY_STRING;
        if (!known) return nullptr;
        Reply& r = place_of(task);
        r.type = task->type == REDIS_REPLY_STATUS  ? Reply::Type::status
                 : task->type == REDIS_REPLY_ERROR ? Reply::Type::error
                                                   : Reply::Type::bulk;
        if (r.type == Reply::Type::bulk && (text[size] != '\r' || text[size + 1] != '\n'))
            return nullptr;
        r.text.assign(text, size);
        return &r;
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}

// The count is an int in hiredis 0.14 and a size_t from 1.0 on.
template <class Count>
void* make_array(const redisReadTask* task, Count count) noexcept {
    try {
        if (task->type != REDIS_REPLY_ARRAY) return nullptr;
        int depth = 0;
        for (const redisReadTask* up = task->parent; up != nullptr; up = up->parent)
            if (++depth > most_nested) return nullptr;
        Reply& r = place_of(task);
        auto* root = static_cast<Root*>(task->privdata);
        const auto n = static_cast<std::size_t>(count);  // a negative one is far too many
        root->elements += n;
        if (n > most_elements || root->elements > most_elements) return nullptr;
        r.type = Reply::Type::array;
        r.count = n;
        if (r.elements.size() < n) r.elements.resize(n);
        return &r;
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}

void* make_integer(const redisReadTask* task, long long value) noexcept {
    Reply& r = place_of(task);
    r.type = Reply::Type::integer;
    r.integer = value;
    return &r;
}

void* make_nil(const redisReadTask* task) noexcept {
    Reply& r = place_of(task);
    r.type = Reply::Type::nil;
    return &r;
}

// What only RESP3 has, which we do not speak, is nonsense, too: hiredis 1.0 and newer would read
// it.
template <class Functions>
constexpr Functions make_functions() noexcept {
    Functions f{};
    f.createString = make_string;
    f.createArray = make_array;
    f.createInteger = make_integer;
    f.createNil = make_nil;
    f.freeObject = [](void*) noexcept {};
    if constexpr (requires { f.createDouble; }) {
        f.createDouble = [](const redisReadTask*, double, char*, std::size_t) noexcept -> void* {
            return nullptr;
        };
        f.createBool = [](const redisReadTask*, int) noexcept -> void* { return nullptr; };
    }
    return f;
}

constinit redisReplyObjectFunctions functions = make_functions<redisReplyObjectFunctions>();

constexpr std::size_t longest_head = 24;  // of an array or a text: a letter, digits, a line's end

char* put_line_end(char* at) noexcept {
    *at++ = '\r';
    *at++ = '\n';
    return at;
}

char* put_head(char* at, char kind, std::size_t count) noexcept {
    *at = kind;
    return put_line_end(std::to_chars(at + 1, at + longest_head - 2, count).ptr);
}

}  // namespace

void Command::clear() noexcept {
    words_.clear();
    numbers_.clear();
}

Command& Command::add(std::string_view text) {
    words_.push_back({text.data() == nullptr ? "" : text.data(), text.size()});
    return *this;
}

Command& Command::add_number(long long number) {
    auto& digits = numbers_.emplace_back();
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
    words_.push_back({nullptr, static_cast<std::size_t>(end - digits.data())});
    return *this;
}

void Command::replace(std::size_t index, std::string_view text) noexcept {
    words_[index] = {text.data(), text.size()};
}

void Command::encode(std::string& out) const {
    std::size_t room = longest_head;
    for (const Word& w : words_)
        room += longest_head + w.size + 2;
    const std::size_t before = out.size();
    out.resize(before + room);
    char* at = put_head(out.data() + before, '*', words_.size());
    auto number = numbers_.begin();
    for (const Word& w : words_) {
        at = put_head(at, '$', w.size);
        at = std::copy_n(w.text != nullptr ? w.text : (number++)->data(), w.size, at);
        at = put_line_end(at);
    }
    out.resize(static_cast<std::size_t>(at - out.data()));
}

struct Codec::State {
    explicit State(std::size_t l) : limit(l), reader(redisReaderCreateWithFunctions(&functions)) {
        if (reader == nullptr) throw std::bad_alloc();
        reader->privdata = &root;
    }
    ~State() { redisReaderFree(reader); }
    State(const State&) = delete;
    State& operator=(const State&) = delete;

    Root root;
    std::size_t limit;
    std::size_t waiting = 0;  // bytes since the last complete reply
    bool broken = false;
    redisReader* reader;
};

Codec::Codec(std::size_t limit) : state_(std::make_unique<State>(limit)) {}
Codec::~Codec() = default;

bool Codec::feed(std::string_view bytes) noexcept {
    State& s = *state_;
    s.waiting += bytes.size();
    if (s.waiting > s.limit || redisReaderFeed(s.reader, bytes.data(), bytes.size()) != REDIS_OK)
        s.broken = true;
    return !s.broken;
}

Codec::Next Codec::next() noexcept {
    State& s = *state_;
    if (s.broken) return Next::broken;
    void* reply = nullptr;
    if (redisReaderGetReply(s.reader, &reply) != REDIS_OK) {
        s.broken = true;
        return Next::broken;
    }
    if (reply == nullptr) return Next::more;
    s.waiting = s.reader->len - s.reader->pos;
    return Next::reply;
}

Reply& Codec::reply() noexcept {
    return state_->root.reply;
}

std::string_view word(std::string_view& rest) noexcept {
    const auto space = rest.find(' ');
    const auto w = rest.substr(0, space);
    rest = space == rest.npos ? std::string_view() : rest.substr(space + 1);
    return w;
}

std::int64_t number(std::string_view text) noexcept {
    std::int64_t n = 0;
    std::from_chars(text.data(), text.data() + text.size(), n);
    constexpr std::int64_t most = 9'200'000'000'000'000;
    return std::clamp(n, -most, most);
}

}  // namespace holdfast::resp
