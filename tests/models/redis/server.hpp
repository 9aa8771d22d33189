// As much of a Redis server as the scripts ask for: a few types, expiry by a clock that the model
// moves, and Lua 5.1, the interpreter that Redis has. A command that is not written here ends the
// run, so that a script cannot be checked against a server that does something else.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace model {

/// One key. Copied with the state that it belongs to.
struct Value {
    enum class Type : std::uint8_t { text, zset, hash };
    Type type = Type::text;
    std::string text;
    std::map<std::string, double> scores;
    std::map<std::string, std::string> fields;
    std::int64_t expires = -1;  ///< server ms; -1: never
};

struct Store {
    std::map<std::string, Value> keys;
    std::int64_t now = 0;     ///< server ms
    std::int64_t micros = 0;  ///< of that millisecond

    /// Null when it is not there or has expired.
    const Value* find(const std::string& key) const;
    Value* find(const std::string& key);
    void sweep();  ///< drops what has expired, so that equal states are equal
};

/// Who listens to a channel at this server, what a script published (replicas publish it, too),
/// whether the server refuses writes, and in a cluster each command whose keys it does not have.
struct Wire {
    std::map<std::string, int> listeners;
    bool read_only = false;
    /// Asked for each command of a script; empty: it has all keys.
    std::function<bool(const std::vector<std::string>&)> has_keys;
    std::vector<std::pair<std::string, std::string>> published;
};

/// The keys of a command that may be in a script; none: any server does it.
std::vector<std::string> keys_of(const std::vector<std::string>& words);

class Lua {
public:
    Lua();
    ~Lua();
    Lua(const Lua&) = delete;
    Lua& operator=(const Lua&) = delete;

    /// Runs a script as EVAL does and returns its answer: one text per lock, "E WORDS" where the
    /// server refused to write, or does not have a key.
    std::vector<std::string> run(const std::string& script, const std::vector<std::string>& keys,
                                 const std::vector<std::string>& arguments, Store&, Wire&);

    /// The same, with the reply as the server sends it.
    std::string evaluate(const std::string& script, const std::vector<std::string>& keys,
                         const std::vector<std::string>& arguments, Store&, Wire&);
    /// One command outside of a script, and its reply.
    std::string call(const std::vector<std::string>& words, Store&, Wire&);

private:
    void load(const std::string& script, const std::vector<std::string>& keys,
              const std::vector<std::string>& arguments);
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace model
