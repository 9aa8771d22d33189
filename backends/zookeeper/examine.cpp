// What these servers are, and what follows for their locks: `holdfast doctor`, probe and `require`.
#include "backend.hpp"
#include "checks.hpp"
#include "client_library.hpp"
#include "errors.hpp"
#include "four_letters.hpp"
#include "holdfast/spi/common_checks.hpp"
#include "holdfast/spi/net/endpoint.hpp"
#include "marks.hpp"
#include "nodes.hpp"

namespace holdfast::zookeeper {
namespace {

/// A right that calls need, and what for.
struct Need {
    CallPtr call;
    std::string words;
};

}  // namespace

/// Which rights are missing, in words, by requests as the verbs send them: on a node of its own in
/// the base and in each folder beside the locks.
awaitable<std::string> ZooKeeperBackend::refused_rights(SessionPtr session,
                                                        boot_clock::time_point deadline) {
    const Options& o = shared_->options;
    Handle& handle = session->handle();
    const std::string own = "/_hf_session-" + make_guid();
    std::vector<Need> needs;
    needs.push_back({handle.create(o.base + own, {}, Handle::Kind::ephemeral),
                     "create nodes in " + o.base + " (acquire)"});
    needs.push_back(
        {handle.list(o.base.empty() ? "/" : o.base), "read " + o.base + " (list of names)"});
    needs.push_back({handle.set(o.base + own, {}), "write to its own nodes (renew)"});
    handle.remove(o.base + own);
    std::vector<std::pair<std::string, std::string>> folders{{records_base(o), "break"}};
    if (o.robust) folders.emplace_back(marks_base(o), "robust=yes");
    for (const auto& [folder, what] : folders) {
        needs.push_back({handle.create(folder + own, {}, Handle::Kind::ephemeral),
                         "create nodes in " + folder + " (" + what + ")"});
        needs.push_back(
            {handle.remove(folder + own), "delete nodes in " + folder + " (" + what + ")"});
    }
    std::string refused;
    for (const Need& need : needs) {
        auto wait = finished(shared_->engine, need.call, deadline);
        if (!co_await std::move(wait)) break;
        if (from_rc(need.call->rc) != errc::denied) continue;
        refused += (refused.empty() ? "" : ", ") + need.words;
    }
    co_return refused;
}

awaitable<spi::Facts> ZooKeeperBackend::server_facts(spi::Endpoint server,
                                                     boot_clock::time_point deadline) {
    spi::Facts facts;
    facts.where = spi::text_of(server);
    auto meeting = four_letters(shared_, server, "srvr", deadline);
    const std::string said = co_await std::move(meeting);
    facts.set("srvr", said);
    spi::note_lines(facts, said, ": ");
    facts.set("tick_ms", shared_->options.tick.count());
    facts.set("ttl_ms", shared_->options.ttl.count());
    if (said.empty()) co_return facts;
    auto asking = four_letters(shared_, server, "conf", deadline);
    const std::string conf = co_await std::move(asking);
    spi::note_lines(facts, conf, "=");
    co_return facts;
}

awaitable<spi::Answer<Examination>> ZooKeeperBackend::examine(boot_clock::time_point deadline) {
    const SessionPtr session = session_for(shared_->options.ttl);
    auto ready = session->ready(deadline);
    const spi::Failure failed = co_await std::move(ready);
    if (failed) co_return failed;
    const auto sent = boot_clock::now();
    CallPtr config = session->handle().get("/zookeeper/config", false);
    auto wait = finished(shared_->engine, config, deadline);
    if (!co_await std::move(wait)) co_return make(Error::no_answer);
    // A connection that broke says nothing about the servers.
    if (unanswered(config->rc)) co_return from_rc(config->rc);
    spi::Facts ensemble;
    spi::note_round_trip(ensemble, boot_clock::now() - sent, shared_->options.ttl);
    if (config->rc == ZOK) note_config(ensemble, config->text);
    auto asking_rights = refused_rights(session, deadline);
    ensemble.set("refused", co_await std::move(asking_rights));
    const auto& hosts = shared_->options.hosts;
    ensemble.set("listed", static_cast<long long>(hosts.size()));
    Examination found;
    for (std::size_t i = 0; i < hosts.size(); ++i) {
        // A server that does not answer leaves time for the others.
        const auto now = boot_clock::now();
        const auto share = (deadline - now) / static_cast<long>(hosts.size() - i + 1);
        auto asking = server_facts(hosts[i], now + share);
        const spi::Facts facts = co_await std::move(asking);
        spi::judge(checks_of_servers(), facts, found.findings);
    }
    spi::judge(checks_of_ensembles(), ensemble, found.findings);
    found.capabilities = capabilities_;
    // Unreadable: as configured.
    if (const auto voters = ensemble.number("voters")) {
        found.capabilities.safety = *voters >= 3 ? SafetyClass::a : SafetyClass::b;
        found.capabilities.set(Capability::survives_failover, *voters >= 3);
    }
    co_return found;
}

}  // namespace holdfast::zookeeper
