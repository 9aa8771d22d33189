#include "server.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <lua.hpp>
#include <optional>
#include <set>
#include <stdexcept>
#include <unordered_map>

namespace model {
namespace {

using Words = std::vector<std::string>;

Store* store = nullptr;  // of the script that runs; one thread
Wire* wire = nullptr;

std::string text_of(double score) {
    std::array<char, 32> out{};
    return {out.data(),
            static_cast<std::size_t>(std::snprintf(out.data(), out.size(), "%.17g", score))};
}

[[noreturn]] void unknown(const Words& w) {
    std::string all;
    for (const std::string& word : w)
        all += word + " ";
    throw std::runtime_error("the model's server does not know: " + all);
}

/// In the order of a sorted set.
std::vector<std::pair<double, std::string>> ranked(const Value& v) {
    std::vector<std::pair<double, std::string>> out;
    for (const auto& [member, score] : v.scores)
        out.emplace_back(score, member);
    std::sort(out.begin(), out.end());
    return out;
}

void push_nil(lua_State* l) {
    lua_pushboolean(l, 0);
}
void push(lua_State* l, const std::string& s) {
    lua_pushlstring(l, s.data(), s.size());
}
void push_status(lua_State* l) {
    lua_newtable(l);
    push(l, "OK");
    lua_setfield(l, -2, "ok");
}
void push_list(lua_State* l, const Words& all) {
    lua_newtable(l);
    for (std::size_t i = 0; i < all.size(); ++i) {
        push(l, all[i]);
        lua_rawseti(l, -2, static_cast<int>(i + 1));
    }
}

/// The key, made if need be.
Value& use(const std::string& key, Value::Type type) {
    if (Value* v = store->find(key)) return *v;
    store->keys.erase(key);
    Value& made = store->keys[key];
    made.type = type;
    return made;
}

bool writes(const std::string& name) {
    static const std::set<std::string> all{"SET",  "DEL",  "PEXPIRE", "PEXPIREAT",       "ZADD",
                                           "ZREM", "HSET", "HDEL",    "ZREMRANGEBYSCORE"};
    return all.count(name) != 0;
}

/// Of the key of this command; nothing where any will do.
std::optional<Value::Type> type_of(const std::string& name) {
    if (name == "GET") return Value::Type::text;
    if (name.starts_with("Z")) return Value::Type::zset;
    if (name.starts_with("H")) return Value::Type::hash;
    return std::nullopt;
}

/// Pushes the reply; false: WRONGTYPE.
bool command(lua_State* l, const Words& w) {
    const std::string& name = w.at(0);
    const auto key = [&](std::size_t i = 1) -> const std::string& { return w.at(i); };
    const auto number = [&](std::size_t i) { return std::strtod(w.at(i).c_str(), nullptr); };
    const auto integer = [&](std::size_t i) { return std::llround(number(i)); };
    const auto drop_empty = [&](const Value& v) {
        if (v.scores.empty() && v.fields.empty()) store->keys.erase(key());
    };
    // What a command of one type finds under a key of another it refuses, before it does anything.
    if (const auto wants = type_of(name)) {
        const Value* v = store->find(key());
        if (v != nullptr && v->type != *wants) return false;
    }
    if (name == "TIME") {
        push_list(l, {std::to_string(store->now / 1000),
                      std::to_string(store->now % 1000 * 1000 + store->micros)});
    } else if (name == "EXISTS") {
        int n = 0;
        for (std::size_t i = 1; i < w.size(); ++i)
            n += store->find(w[i]) != nullptr ? 1 : 0;
        lua_pushinteger(l, n);
    } else if (name == "GET") {
        const Value* v = store->find(key());
        if (v == nullptr) return push_nil(l), true;
        push(l, v->text);
    } else if (name == "SET") {
        Value next;
        next.text = w.at(2);
        const bool absent_only = w.size() >= 4 && w[3] == "NX";
        if (absent_only && store->find(key()) != nullptr) return push_nil(l), true;
        if (w.size() == 6 && absent_only && w[4] == "PX")
            next.expires = store->now + integer(5);
        else if (w.size() == 5 && w[3] == "PX")
            next.expires = store->now + integer(4);
        else if (w.size() == 5 && w[3] == "EX")
            next.expires = store->now + 1000 * integer(4);
        else if (w.size() == 5 && w[3] == "PXAT")
            next.expires = integer(4);
        else if (w.size() == 4 && w[3] == "KEEPTTL") {
            if (const Value* old = store->find(key())) next.expires = old->expires;
        } else if (w.size() != (absent_only ? 4 : 3))
            unknown(w);
        store->keys[key()] = next;
        push_status(l);
    } else if (name == "DEL") {
        int gone = 0;
        for (std::size_t i = 1; i < w.size(); ++i) {
            gone += store->find(w[i]) != nullptr ? 1 : 0;
            store->keys.erase(w[i]);
        }
        lua_pushinteger(l, gone);
    } else if (name == "PEXPIRE" || name == "PEXPIREAT") {
        Value* v = store->find(key());
        lua_pushinteger(l, v != nullptr ? 1 : 0);
        if (v != nullptr) v->expires = integer(2) + (name == "PEXPIRE" ? store->now : 0);
    } else if (name == "PTTL") {
        const Value* v = store->find(key());
        lua_pushnumber(l, v == nullptr     ? -2
                          : v->expires < 0 ? -1
                                           : static_cast<double>(v->expires - store->now));
    } else if (name == "ZADD") {
        Value& v = use(key(), Value::Type::zset);
        const auto before = v.scores.size();
        for (std::size_t i = 2; i + 1 < w.size(); i += 2)
            v.scores[w[i + 1]] = number(i);
        lua_pushinteger(l, static_cast<int>(v.scores.size() - before));
    } else if (name == "ZCARD") {
        const Value* v = store->find(key());
        lua_pushinteger(l, v == nullptr ? 0 : static_cast<int>(v->scores.size()));
    } else if (name == "ZREM") {
        Value* v = store->find(key());
        std::size_t gone = 0;
        for (std::size_t i = 2; v != nullptr && i < w.size(); ++i)
            gone += v->scores.erase(w[i]);
        lua_pushinteger(l, static_cast<int>(gone));
        if (v != nullptr) drop_empty(*v);
    } else if (name == "ZSCORE") {
        const Value* v = store->find(key());
        if (v == nullptr || v->scores.count(w.at(2)) == 0) return push_nil(l), true;
        push(l, text_of(v->scores.at(w[2])));
    } else if (name == "ZRANK") {
        const Value* v = store->find(key());
        if (v == nullptr) return push_nil(l), true;
        const auto all = ranked(*v);
        for (std::size_t i = 0; i < all.size(); ++i)
            if (all[i].second == w.at(2)) return lua_pushinteger(l, static_cast<int>(i)), true;
        push_nil(l);
    } else if (name == "ZRANGE" && w.size() == 8 && w[4] == "BYLEX") {
        // All have the same score, as BYLEX requires, and the map is in this order.
        Words out;
        const auto before = [&](const std::string& member, const std::string& bound) {
            const std::string_view text = std::string_view(bound).substr(1);
            return bound[0] == '[' ? member < text : member <= text;
        };
        if (w[5] != "LIMIT" || integer(6) != 0) unknown(w);
        if (const Value* v = store->find(key()))
            for (const auto& [member, score] : v->scores) {
                if (before(member, w[2])) continue;
                const std::string_view last = std::string_view(w[3]).substr(1);
                const bool in = w[3][0] == '[' ? member <= last : member < last;
                if (!in || static_cast<long long>(out.size()) == integer(7)) break;
                out.push_back(member);
            }
        push_list(l, out);
    } else if (name == "ZRANGE") {
        Words out;
        if (const Value* v = store->find(key())) {
            const auto all = ranked(*v);
            const auto size = static_cast<long long>(all.size());
            auto from = integer(2), to = integer(3);
            from = from < 0 ? std::max<long long>(from + size, 0) : from;
            to = std::min(to < 0 ? to + size : to, size - 1);
            const bool scores = w.size() == 5 && w[4] == "WITHSCORES";
            if (!scores && w.size() != 4) unknown(w);
            for (auto i = from; i <= to; ++i) {
                out.push_back(all[static_cast<std::size_t>(i)].second);
                if (scores) out.push_back(text_of(all[static_cast<std::size_t>(i)].first));
            }
        }
        push_list(l, out);
    } else if (name == "ZREMRANGEBYSCORE" && w.at(2) == "-inf") {
        int n = 0;
        if (Value* v = store->find(key())) {
            n = static_cast<int>(
                std::erase_if(v->scores, [&](const auto& e) { return e.second <= number(3); }));
            drop_empty(*v);
        }
        lua_pushinteger(l, n);
    } else if (name == "HSET" && w.size() == 4) {
        Value& v = use(key(), Value::Type::hash);
        lua_pushinteger(l, v.fields.count(w[2]) == 0 ? 1 : 0);
        v.fields[w[2]] = w[3];
    } else if (name == "HGET") {
        const Value* v = store->find(key());
        if (v == nullptr || v->fields.count(w.at(2)) == 0) return push_nil(l), true;
        push(l, v->fields.at(w[2]));
    } else if (name == "HDEL") {
        Value* v = store->find(key());
        lua_pushinteger(l, v != nullptr ? static_cast<int>(v->fields.erase(w.at(2))) : 0);
        if (v != nullptr) drop_empty(*v);
    } else if (name == "PUBLISH") {
        const int n = wire->listeners[key()];
        wire->published.emplace_back(key(), w.at(2));
        lua_pushinteger(l, n);
    } else if (name == "PUBSUB" && w.at(1) == "NUMSUB" && w.size() == 3) {
        push_list(l, {w[2]});
        lua_pushinteger(l, wire->listeners[w[2]]);
        lua_rawseti(l, -2, 2);
    } else {
        unknown(w);
    }
    return true;
}

/// As it ends a script, or what that answers for a lock.
bool is_refusal(const std::string& why, const Wire& w) {
    return (w.read_only && why.find("READONLY") != why.npos) ||
           (w.has_keys && why.find("non local key") != why.npos);
}

constexpr const char* wrong_type =
    "WRONGTYPE Operation against a key holding the wrong kind of value";
constexpr const char* read_only = "READONLY You can't write against a read only replica.";
constexpr const char* not_local =
    "ERR Script attempted to access a non local key in a cluster node";

int call(lua_State* l, bool raise) {
    bool fits = true;
    std::string failed;
    const char* words = wrong_type;
    {
        Words w;
        for (int i = 1; i <= lua_gettop(l); ++i) {
            std::size_t n = 0;
            const char* s = lua_tolstring(l, i, &n);
            if (s == nullptr) {
                failed = "Lua redis lib command arguments must be strings or integers";
                break;
            }
            w.emplace_back(s, n);
        }
        if (!w.empty())
            std::transform(w[0].begin(), w[0].end(), w[0].begin(),
                           [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
        try {
            if (failed.empty() && wire->has_keys && !wire->has_keys(w)) {
                fits = false;
                words = not_local;
            } else if (failed.empty() && wire->read_only && writes(w.at(0))) {
                fits = false;
                words = read_only;
            } else if (failed.empty()) {
                fits = command(l, w);
            }
        } catch (const std::exception& e) {
            failed = e.what();
        }
    }
    if (!failed.empty()) return luaL_error(l, "FATAL %s", failed.c_str());
    if (fits) return 1;
    if (raise) return luaL_error(l, "%s", words);
    lua_newtable(l);
    lua_pushstring(l, words);
    lua_setfield(l, -2, "err");
    return 1;
}

int call_raising(lua_State* l) {
    return call(l, true);
}
int call_protected(lua_State* l) {
    return call(l, false);
}

/// Ours end after some thousands of instructions; meanwhile the server does nothing else.
constexpr int most_instructions = 10'000'000;

void too_long(lua_State* l, lua_Debug*) {
    luaL_error(l, "FATAL the script does not end");
}

/// What is on top of the stack, as the server converts it.
void encode(lua_State* l, std::string& out) {
    if (lua_type(l, -1) == LUA_TSTRING) {
        std::size_t n = 0;
        const char* text = lua_tolstring(l, -1, &n);
        out.append("$").append(std::to_string(n)).append("\r\n").append(text, n).append("\r\n");
    } else if (lua_type(l, -1) == LUA_TNUMBER) {
        const auto number = static_cast<long long>(lua_tonumber(l, -1));
        out.append(":").append(std::to_string(number)).append("\r\n");
    } else if (lua_istable(l, -1)) {
        for (const auto& [field, sign] : {std::pair("err", "-"), std::pair("ok", "+")}) {
            lua_getfield(l, -1, field);
            const bool found = lua_isstring(l, -1) != 0;
            if (found) out.append(sign).append(lua_tostring(l, -1)).append("\r\n");
            lua_pop(l, 1);
            if (found) return;
        }
        std::string all;
        int n = 0;
        for (;; ++n) {
            lua_rawgeti(l, -1, n + 1);
            const bool more = !lua_isnil(l, -1);
            if (more) encode(l, all);
            lua_pop(l, 1);
            if (!more) break;
        }
        out.append("*").append(std::to_string(n)).append("\r\n").append(all);
    } else if (lua_isboolean(l, -1) && lua_toboolean(l, -1) != 0) {
        out.append(":1\r\n");
    } else {
        out.append("$-1\r\n");
    }
}

void set_list(lua_State* l, const char* name, const Words& all) {
    push_list(l, all);
    lua_setglobal(l, name);
}

}  // namespace

const Value* Store::find(const std::string& key) const {
    const auto at = keys.find(key);
    if (at == keys.end()) return nullptr;
    // As the server has it: alive in the millisecond of its end.
    return at->second.expires >= 0 && now > at->second.expires ? nullptr : &at->second;
}

Value* Store::find(const std::string& key) {
    return const_cast<Value*>(std::as_const(*this).find(key));
}

void Store::sweep() {
    std::erase_if(keys,
                  [&](const auto& e) { return e.second.expires >= 0 && now > e.second.expires; });
}

struct Lua::State {
    lua_State* l = luaL_newstate();
    std::unordered_map<std::string, int> loaded;
};

std::vector<std::string> keys_of(const Words& words) {
    static const std::set<std::string> without{"TIME", "PUBLISH", "PUBSUB"};
    const std::string& name = words.at(0);
    if (without.contains(name)) return {};
    if (name == "DEL" || name == "EXISTS") return {words.begin() + 1, words.end()};
    return {words.at(1)};
}

Lua::Lua() : state_(std::make_unique<State>()) {
    lua_State* l = state_->l;
    luaL_openlibs(l);
    lua_newtable(l);
    lua_pushcfunction(l, call_raising);
    lua_setfield(l, -2, "call");
    lua_pushcfunction(l, call_protected);
    lua_setfield(l, -2, "pcall");
    lua_setglobal(l, "redis");
}

Lua::~Lua() {
    lua_close(state_->l);
}

void Lua::load(const std::string& script, const Words& keys, const Words& arguments) {
    lua_State* l = state_->l;
    auto found = state_->loaded.find(script);
    if (found == state_->loaded.end()) {
        if (luaL_loadbuffer(l, script.data(), script.size(), "@script") != 0)
            throw std::runtime_error(lua_tostring(l, -1));
        found = state_->loaded.emplace(script, luaL_ref(l, LUA_REGISTRYINDEX)).first;
    }
    set_list(l, "KEYS", keys);
    set_list(l, "ARGV", arguments);
    lua_rawgeti(l, LUA_REGISTRYINDEX, found->second);
    lua_sethook(l, &too_long, LUA_MASKCOUNT, most_instructions);  // counts from here
}

std::string Lua::evaluate(const std::string& script, const Words& keys, const Words& arguments,
                          Store& s, Wire& w) {
    lua_State* l = state_->l;
    store = &s;
    wire = &w;
    load(script, keys, arguments);
    std::string out;
    if (lua_pcall(l, 0, 1, 0) == 0) {
        encode(l, out);
    } else {
        out = lua_tostring(l, -1);
        if (out.find("FATAL") != out.npos) throw std::runtime_error(out);
        out = "-" + out + "\r\n";
    }
    lua_pop(l, 1);
    return out;
}

std::string Lua::call(const Words& words, Store& s, Wire& w) {
    lua_State* l = state_->l;
    store = &s;
    wire = &w;
    if (w.read_only && writes(words.at(0))) return "-" + std::string(read_only) + "\r\n";
    if (!command(l, words)) return "-" + std::string(wrong_type) + "\r\n";
    std::string out;
    encode(l, out);
    lua_pop(l, 1);
    return out;
}

std::vector<std::string> Lua::run(const std::string& script, const Words& keys,
                                  const Words& arguments, Store& s, Wire& w) {
    lua_State* l = state_->l;
    store = &s;
    wire = &w;
    load(script, keys, arguments);
    if (lua_pcall(l, 0, 1, 0) != 0) {
        const std::string why = lua_tostring(l, -1);
        lua_pop(l, 1);
        if (is_refusal(why, w)) return {"E " + why};
        throw std::runtime_error(why);
    }
    Words out;
    if (lua_istable(l, -1)) {
        for (int i = 1;; ++i) {
            lua_rawgeti(l, -1, i);
            const bool more = lua_isstring(l, -1) != 0;
            if (more) out.emplace_back(lua_tostring(l, -1));
            lua_pop(l, 1);
            if (!more) break;
        }
    } else if (lua_isstring(l, -1) != 0) {
        out.emplace_back(lua_tostring(l, -1));
    }
    lua_pop(l, 1);
    for (const std::string& text : out)
        if (text.find("FATAL") != text.npos || (text.starts_with("E ") && !is_refusal(text, w)))
            throw std::runtime_error(text);
    return out;
}

}  // namespace model
