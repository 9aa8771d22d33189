#include "floors/own_clean_up.hpp"

#include <fmt/format.h>
#include <sqlite3.h>

#include <holdfast/client.hpp>
#include <holdfast/spi/config.hpp>

#include "bench.hpp"
#include "floors/redis_floor.hpp"

namespace holdfast::bench {

namespace {

/// What a clean-up removed. Negative: it could not reach the server without Holdfast.
struct Removed {
    long long entries = -1;
    long long left = 0;
};

void must_be_status(const RedisReply& reply, const char* what) {
    if (reply->type == REDIS_REPLY_ERROR)
        throw SelfCheck(fmt::format("clean-up: {}: {}", what, std::string(reply->str, reply->len)));
}

RedisContext log_in(const spi::Settings& settings) {
    const auto& at = settings.hosts.front();
    RedisContext context(redisConnect(at.host.c_str(), at.port));
    if (!context || context->err != 0)
        throw SelfCheck(std::string("clean-up: ") + (context ? context->errstr : "no memory"));
    if (!settings.password.empty()) {
        const auto password = settings.password.read();
        if (!password) throw SelfCheck("clean-up: " + password.error().detail);
        std::vector<std::string> login{"AUTH"};
        if (!settings.user.empty()) login.push_back(settings.user);
        login.push_back(*password);
        must_be_status(ask(context.get(), login), "AUTH");
    }
    const auto& path = settings.path;
    const auto database = path.substr(path.empty() || path[0] != '/' ? 0 : 1);
    if (!database.empty()) must_be_status(ask(context.get(), {"SELECT", database}), "SELECT");
    return context;
}

std::vector<std::string> keys_with(redisContext* context, const std::string& word) {
    std::vector<std::string> keys;
    std::string cursor = "0";
    do {
        const auto reply =
            ask(context, {"SCAN", cursor, "MATCH", "*" + word + "*", "COUNT", "1000"});
        if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2)
            throw SelfCheck("clean-up: SCAN was refused");
        cursor.assign(reply->element[0]->str, reply->element[0]->len);
        for (std::size_t i = 0; i < reply->element[1]->elements; ++i) {
            const redisReply& key = *reply->element[1]->element[i];
            keys.emplace_back(key.str, key.len);
        }
    } while (cursor != "0");
    return keys;
}

/// Only keys that carry this run's random prefix; released locks leave a token there for a day.
Removed clean_redis(const spi::Settings& settings, const std::string& prefix) {
    if (settings.scheme != "redis" || settings.hosts.size() != 1) return {};
    const auto context = log_in(settings);
    Removed removed{0, 0};
    for (const auto& key : keys_with(context.get(), prefix)) {
        must_be_status(ask(context.get(), {"DEL", key}), "DEL");
        ++removed.entries;
    }
    removed.left = static_cast<long long>(keys_with(context.get(), prefix).size());
    return removed;
}

Removed clean_sqlite(const spi::Settings& settings, const std::string& prefix) {
    sqlite3* raw = nullptr;
    const int opened = sqlite3_open_v2(settings.path.c_str(), &raw, SQLITE_OPEN_READWRITE, nullptr);
    const std::unique_ptr<sqlite3, int (*)(sqlite3*)> db(raw, sqlite3_close);
    sqlite3_stmt* statement = nullptr;
    sqlite3_busy_timeout(raw, 5000);
    // The prefix is ours, of letters, digits, '-' and '/'; a namespace may stand before it.
    const char* sql = "DELETE FROM holdfast_lease WHERE instr(name, ?1) > 0";
    if (opened != SQLITE_OK || sqlite3_prepare_v2(raw, sql, -1, &statement, nullptr) != SQLITE_OK)
        throw SelfCheck(std::string("clean-up: ") + sqlite3_errmsg(raw));
    sqlite3_bind_text(statement, 1, prefix.data(), static_cast<int>(prefix.size()),
                      SQLITE_TRANSIENT);
    const int done = sqlite3_step(statement);
    sqlite3_finalize(statement);
    if (done != SQLITE_DONE) throw SelfCheck(std::string("clean-up: ") + sqlite3_errmsg(raw));
    return {sqlite3_changes(raw), 0};
}

}  // namespace

CleanUp clean_up_own(const Deployment& own) {
    Diagnostics words;
    ClientOptions how;
    how.config_file = own.config_file;
    how.diagnostics = &words;
    const auto client = Client::open(own.open, how);
    if (!client) throw SelfCheck(words.text());
    const auto held = client->list(own.prefix, 10000, &words);
    if (!held) throw SelfCheck("cannot list what is held: " + words.text());
    CleanUp done;
    done.still_held = held->size();
    done.words = fmt::format("{} locks held below {}", held->size(), own.prefix);
    if (done.still_held != 0) return done;  // kept for somebody to look at

    const auto chosen = resolve(own.open, own.config_file, spi::Registry::linked(), words);
    if (!chosen) throw SelfCheck(words.text());
    const Removed removed = own.backend == "redis"    ? clean_redis(chosen->settings, own.prefix)
                            : own.backend == "sqlite" ? clean_sqlite(chosen->settings, own.prefix)
                                                      : Removed{};
    if (removed.left != 0)
        throw SelfCheck(
            fmt::format("clean-up: {} entries with {} are left", removed.left, own.prefix));
    done.words +=
        removed.entries < 0
            ? "; what released locks leave behind goes by itself, within a day or so"
            : fmt::format("; {} entries of released locks removed, none left", removed.entries);
    return done;
}

}  // namespace holdfast::bench
