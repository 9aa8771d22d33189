// Records of broken leases: one node for each name whose lease was broken within the last day. Not
// below the name itself, where other libraries would take it for a place in line.
#include "backend.hpp"
#include "client_library.hpp"
#include "errors.hpp"
#include "marks.hpp"
#include "nodes.hpp"

namespace holdfast::zookeeper {

std::string records_base(const Options& o) {
    return o.base + "/_hf_broken";
}

namespace {

std::string record_path(const Options& o, std::string_view name) {
    return records_base(o) + "/" + escape(o.prefix + std::string(name), false);
}

}  // namespace

awaitable<spi::Answer<std::string>> ZooKeeperBackend::note(std::string_view name,
                                                           std::optional<std::string> text,
                                                           boot_clock::time_point deadline) {
    const SessionPtr session = session_for(shared_->options.ttl);
    const std::string path = record_path(shared_->options, name);
    auto ready = session->ready(deadline);
    const spi::Failure failed = co_await std::move(ready);
    if (failed) co_return failed;
    if (!text) {
        CallPtr seen = session->handle().get(path, false);
        auto wait = finished(shared_->engine, seen, deadline);
        if (!co_await std::move(wait)) co_return make(Error::no_answer);
        if (seen->rc != ZOK && seen->rc != ZNONODE) co_return from_rc(seen->rc);
        co_return seen->rc == ZOK ? std::move(seen->text) : std::string();
    }
    int rc = ZNONODE;
    CallPtr folder;
    for (int round = 0; round < 4 && (rc == ZNONODE || rc == ZNODEEXISTS); ++round) {
        CallPtr written = rc == ZNODEEXISTS
                              ? session->handle().set(path, *text, -1)
                              : session->handle().create(path, *text, Handle::Kind::persistent);
        auto wait = finished(shared_->engine, written, deadline);
        if (!co_await std::move(wait)) co_return make(Error::no_answer);
        const bool missing = written->rc == ZNONODE && rc != ZNODEEXISTS;
        rc = written->rc;
        if (missing)
            folder = session->handle().create(records_base(shared_->options), {},
                                              Handle::Kind::persistent);
    }
    if (rc == ZNONODE && folder && from_rc(folder->rc) == errc::denied)
        co_return from_rc(folder->rc);
    if (rc != ZOK) co_return from_rc(rc);
    auto forgetting = forget_records(session, path, deadline);
    co_await std::move(forgetting);
    co_return std::move(*text);
}

/// Servers end no persistent node, so each break removes what is older than a day: some of it where
/// there is much.
awaitable<void> ZooKeeperBackend::forget_records(SessionPtr session, std::string newest,
                                                 boot_clock::time_point deadline) {
    const std::string base = records_base(shared_->options);
    CallPtr listed = session->handle().list(base);
    auto wait = finished(shared_->engine, listed, deadline);
    if (!co_await std::move(wait) || listed->rc != ZOK) co_return;
    listed->children.resize(std::min(listed->children.size(), asked_at_once));
    std::vector<std::string> paths{newest};
    for (const std::string& child : listed->children)
        paths.push_back(base + "/" + child);
    std::vector<CallPtr> asked;
    asked.reserve(paths.size());
    for (const std::string& path : paths)
        asked.push_back(session->handle().get(path, false));
    for (std::size_t i = 0; i < paths.size(); ++i) {
        auto answer = finished(shared_->engine, asked[i], deadline);
        if (!co_await std::move(answer) || asked.front()->rc != ZOK) co_return;
        constexpr std::chrono::hours day{24};
        if (asked[i]->rc == ZOK && asked[i]->modified + day < asked.front()->modified)
            session->handle().remove(paths[i]);
    }
}

}  // namespace holdfast::zookeeper
