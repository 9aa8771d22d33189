#include "redis.hpp"

#include <algorithm>
#include <boost/uuid/detail/sha1.hpp>
#include <cctype>
#include <optional>
#include <stdexcept>
#include <utility>

namespace holdfast::sim {
namespace {

model::Lua& lua() {
    thread_local model::Lua one;  // keeps compiled scripts, and no state of theirs
    return one;
}

std::string sha1_of(const std::string& text) {
    boost::uuids::detail::sha1 hash;
    hash.process_bytes(text.data(), text.size());
    boost::uuids::detail::sha1::digest_type digest{};
    hash.get_digest(digest);
    std::string out;
    for (const unsigned word : digest)
        for (int shift = 28; shift >= 0; shift -= 4)
            out += "0123456789abcdef"[word >> static_cast<unsigned>(shift) & 15U];
    return out;
}

/// The first command, taken out of the bytes; nothing while some of it is missing.
std::optional<std::vector<std::string>> take_command(std::string& bytes) {
    std::size_t at = 0;
    const auto number = [&](char sign) -> std::optional<std::size_t> {
        const auto end = bytes.find("\r\n", at);
        if (end == bytes.npos) return std::nullopt;
        if (bytes[at] != sign) throw std::runtime_error("a client sends nonsense: " + bytes);
        const auto n = std::stoul(bytes.substr(at + 1, end - at - 1));
        at = end + 2;
        return n;
    };
    const auto count = number('*');
    if (!count) return std::nullopt;
    std::vector<std::string> words(*count);
    for (std::string& word : words) {
        const auto size = number('$');
        if (!size || bytes.size() < at + *size + 2) return std::nullopt;
        word = bytes.substr(at, *size);
        at += *size + 2;
    }
    bytes.erase(0, at);
    return words;
}

std::string shown(const std::vector<std::string>& words) {
    std::string out;
    for (std::size_t i = 0; i < words.size(); ++i) {
        const bool script = i == 1 && words[0].starts_with("EVAL");
        out += script ? " " + (words[0] == "EVALSHA" ? words[1] : sha1_of(words[1])).substr(0, 4)
                      : (i == 0 ? "" : " ") + words[i];
    }
    return out;
}

}  // namespace

std::string Redis::bulk(std::string_view text) {
    return "$" + std::to_string(text.size()) + "\r\n" + std::string(text) + "\r\n";
}

std::string Redis::command_of(const Words& words) {
    std::string name = words.at(0);
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    return name;
}

Redis::Redis(Kernel& k, std::string name) : kernel_(k) {
    machine.name = std::move(name);
    machine.local = epoch + k.random().between(0, 1000 * second);
    begin();
    began_ -= 1000 * second;
}

void Redis::begin() {
    began_ = machine.clock(kernel_.now());
    run_id_ = sha1_of(machine.name + std::to_string(kernel_.random().next()));
}

void Redis::set_time() {
    const Nanos now = machine.clock(kernel_.now());
    store_.now = now / ms;
    store_.micros = now % ms / us;
    store_.sweep();
}

const model::Store& Redis::store() {
    set_time();
    return store_;
}

void Redis::move_key(const std::string& key, Redis& to) {
    set_time();
    to.set_time();
    auto moved = store_.keys.extract(key);
    if (moved.empty()) return;
    std::int64_t& expires = moved.mapped().expires;
    if (expires >= 0) expires = to.store_.now + std::max<std::int64_t>(1, expires - store_.now);
    to.store_.keys[key] = std::move(moved.mapped());
}

void Redis::opened(const std::shared_ptr<Connection>& c) {
    sessions_.push_back(std::make_shared<Session>());
    sessions_.back()->connection = c;
}

void Redis::closed(Connection& c) {
    // What it had sent is still done.
    for (const auto& s : sessions_)
        if (s->connection.get() == &c) s->channels.clear();
    std::erase_if(sessions_, [&](const auto& s) { return s->connection.get() == &c && !s->busy; });
}

void Redis::arrived(Connection& c, std::string_view bytes) {
    for (const auto& s : sessions_)
        if (s->connection.get() == &c) {
            s->in += bytes;
            return look_at(*s);
        }
}

void Redis::look_at(Session& s) {
    if (s.busy) return;
    auto command = take_command(s.in);
    if (!command) return;
    s.busy = true;
    // One after the other, whoever asks.
    free_at_ = std::max(free_at_, kernel_.now()) + kernel_.random().between(fastest, slowest);
    kernel_.at(free_at_, [this, session = s.shared_from_this(), words = std::move(*command)] {
        serve(session, words);
    });
}

void Redis::serve(const std::shared_ptr<Session>& s, const Words& words) {
    // A restart takes its sessions with it.
    if (std::find(sessions_.begin(), sessions_.end(), s) == sessions_.end()) return;
    if (kernel_.now() >= machine.frozen_until) return run(*s, words);
    waiting_.emplace_back(s, words);
}

void Redis::go_on() {
    if (kernel_.now() < machine.frozen_until) return;
    for (const auto& [session, words] : std::exchange(waiting_, {}))
        serve(session, words);
}

void Redis::run(Session& s, const Words& words) {
    set_time();
    std::string reply = answer(s, words);
    if (ran && !reply.starts_with("-NOSCRIPT")) ran(words, reply, s.connection->route().process);
    if (kernel_.tracing) {
        std::string line = shown(words) + " -> " + reply.substr(0, 100);
        std::replace_if(
            line.begin(), line.end(), [](char c) { return c == '\r' || c == '\n'; }, ' ');
        kernel_.trace(machine.name, s.connection->route().process.name + ": " + line);
    }
    s.connection->reply(std::move(reply));
    s.busy = false;
    if (!s.connection->at_server() && s.in.empty())
        std::erase_if(sessions_, [&](const auto& one) { return one.get() == &s; });
    else
        look_at(s);
}

std::string Redis::answer(Session& s, const Words& words) {
    const std::string name = command_of(words);
    if (name == "EVAL" || name == "EVAL_RO" || name == "EVALSHA") return script(words);
    if (name == "PING")
        return s.channels.empty() ? "+PONG\r\n" : "*2\r\n" + bulk("pong") + bulk("");
    if (name == "HELLO" && role_ != Role::untold)
        return "*6\r\n" + bulk("server") + bulk("redis") + bulk("version") + bulk("7.0.15") +
               bulk("role") + bulk(role_ == Role::replica ? "replica" : "master");
    if (name == "HELLO")
        return "*4\r\n" + bulk("server") + bulk("redis") + bulk("version") + bulk("7.0.15");
    if (name == "INFO")
        return bulk("redis_version:7.0.15\r\nrun_id:" + run_id_ + "\r\nuptime_in_seconds:" +
                    std::to_string((machine.clock(kernel_.now()) - began_) / second) + "\r\n");
    if (name == "SUBSCRIBE" && (deaf == "*" || s.connection->route().process.name == deaf))
        return refuses_it ? "-NOPERM this user has no permissions to access one of the channels\r\n"
                          : "";
    if (name == "SUBSCRIBE") {
        s.channels.insert(words.at(1));
        return "*3\r\n" + bulk("subscribe") + bulk(words[1]) + ":" +
               std::to_string(s.channels.size()) + "\r\n";
    }
    model::Wire to = wire();
    return lua().call(words, store_, to);
}

model::Wire Redis::wire() {
    model::Wire to;
    to.read_only = is_replica();
    for (const auto& one : sessions_)
        for (const std::string& channel : one->channels)
            ++to.listeners[channel];
    return to;
}

bool Redis::listens(const std::string& channel) const {
    return std::any_of(sessions_.begin(), sessions_.end(),
                       [&](const auto& one) { return one->channels.contains(channel); });
}

std::string Redis::script(const Words& words) {
    std::string sha = words.at(1);
    if (words[0] != "EVALSHA") {
        sha = sha1_of(words[1]);
        scripts_[sha] = words[1];
    }
    const auto known = scripts_.find(sha);
    if (known == scripts_.end()) return "-NOSCRIPT No matching script. Please use EVAL.\r\n";
    const auto keys = static_cast<std::ptrdiff_t>(std::stoul(words.at(2)));
    model::Wire to = wire();
    auto reply = lua().evaluate(known->second, Words(words.begin() + 3, words.begin() + 3 + keys),
                                Words(words.begin() + 3 + keys, words.end()), store_, to);
    for (const auto& [channel, text] : to.published)
        publish(channel, text);
    return reply;
}

void Redis::publish(const std::string& channel, const std::string& text) {
    for (const auto& one : sessions_)
        if (one->channels.count(channel) != 0) {
            kernel_.trace(machine.name,
                          "tells " + one->connection->route().process.name + ": " + text);
            one->connection->reply("*3\r\n" + bulk("message") + bulk(channel) + bulk(text));
        }
}

void Redis::set_replica(bool replica) {
    const bool was = is_replica();
    role_ = replica ? Role::replica : Role::primary;
    if (replica && !was) hang_up();
}

void Redis::hang_up() {
    for (const auto& s : std::exchange(sessions_, {}))
        s->connection->server_closes(kernel_.random().chance(500));
}

void Redis::restart(Nanos down, bool empty) {
    up_ = false;
    if (empty) {
        flush();
        emptied_ = kernel_.now();
    }
    scripts_.clear();
    hang_up();
    kernel_.after(down, [this] { recover(); });
}

void Redis::recover() {
    if (!std::exchange(up_, true)) begin();
    machine.frozen_until = kernel_.now();
    go_on();
}

void Redis::pause(Nanos until) {
    machine.frozen_until = std::max(machine.frozen_until, until);
    kernel_.at(until, [this] { go_on(); });
}

}  // namespace holdfast::sim
