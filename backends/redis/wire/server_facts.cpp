#include "server_facts.hpp"

#include "errors.hpp"

namespace holdfast::redis {
namespace {

/// The value behind a name in a reply that lists names and values by turns.
std::string_view value_of(const Reply& list, std::string_view name) noexcept {
    const auto items = list.items();
    for (std::size_t i = 0; i + 1 < items.size(); i += 2)
        if (items[i].is_text() && items[i].text == name && items[i + 1].is_text())
            return items[i + 1].text;
    return {};
}

/// Keeps nothing, so that one serves all connections.
class NoCluster final : public Greeting {
public:
    unsigned ask(std::string& out) override {
        Command c;
        c.add("HELLO");
        c.encode(out);
        return 1;
    }
    error_code answered(unsigned, const Reply& r, std::string& detail) override {
        if (!r.is(Reply::Type::array)) return {};
        if (value_of(r, "mode") == "cluster") {
            detail = "this is a Redis Cluster; give the URL of a single server";
            return make(Error::cluster);
        }
        const auto version = value_of(r, "version");
        if (value_of(r, "server") == "redis" && !version.empty() && too_old(version)) {
            detail = "the server is Redis " + std::string(version);
            return make(Error::too_old);
        }
        return {};
    }
};

}  // namespace

std::string_view fact(std::string_view info, std::string_view key) noexcept {
    for (std::size_t at = 0; (at = info.find(key, at)) != info.npos; at += key.size()) {
        const bool line = at == 0 || info[at - 1] == '\n';
        if (!line || !info.substr(at + key.size()).starts_with(':')) continue;
        const auto rest = info.substr(at + key.size() + 1);
        return rest.substr(0, rest.find_first_of("\r\n"));
    }
    return {};
}

bool too_old(std::string_view version) noexcept {
    const auto dot = version.find('.');
    const auto major = number(version);
    const auto minor = dot == version.npos ? 0 : number(version.substr(dot + 1));
    return major < 6 || (major == 6 && minor < 2);
}

Greeting& no_cluster() noexcept {
    static NoCluster one;
    return one;
}

std::string unsynced(std::string_view info, const Reply* config) {
    if (fact(info, "aof_enabled") != "1") return "it keeps no append-only file (appendonly no)";
    const auto state = [&](std::string_view key) {
        const auto value = fact(info, key);
        return value.empty() || value == "ok";
    };
    if (!state("aof_last_write_status")) return "its last write to the append-only file failed";
    // While the file is made for the first time, what is written meanwhile is no part of it yet.
    const bool rewriting =
        fact(info, "aof_rewrite_in_progress") == "1" || fact(info, "aof_rewrite_scheduled") == "1";
    if (!state("aof_last_bgrewrite_status"))
        return "its append-only file could not be rewritten, and may be incomplete";
    if (rewriting && fact(info, "aof_last_rewrite_time_sec") == "-1")
        return "its append-only file is being made, and counts only once that is done";
    if (config == nullptr || !config->is(Reply::Type::array))
        return "this user may not ask CONFIG GET, so it is unknown whether grants outlive a crash";
    if (const auto fsync = value_of(*config, "appendfsync"); fsync != "always")
        return "appendfsync is " + std::string(fsync.empty() ? "unknown" : fsync) +
               ", and only with always is each write synced before it is answered";
    if (value_of(*config, "no-appendfsync-on-rewrite") != "no")
        return "no-appendfsync-on-rewrite is not no: while it saves, nothing is synced";
    return {};
}

}  // namespace holdfast::redis
