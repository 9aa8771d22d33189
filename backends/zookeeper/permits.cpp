// Where permits and a line meet on one name, or other libraries' layouts: each looks for the other
// once its own node is there, so that one of two sees the other. tests/models/zookeeper/leases.pml
#include <algorithm>

#include "backend.hpp"
#include "client_library.hpp"
#include "errors.hpp"

namespace holdfast::zookeeper {
namespace {

constexpr int most_rounds = 4;
/// An attempt that is refused leaves again within that time.
constexpr milliseconds passing{20};

}  // namespace

awaitable<spi::Failure> ZooKeeperBackend::no_claims(SessionPtr session, std::string parent,
                                                    std::vector<std::string> strangers,
                                                    boot_clock::time_point deadline) {
    for (std::size_t from = 0; from < strangers.size(); from += asked_at_once) {
        const std::size_t to = std::min(from + asked_at_once, strangers.size());
        std::vector<CallPtr> asked;
        for (std::size_t i = from; i < to; ++i)
            asked.push_back(session->handle().get(parent + "/" + strangers[i], false));
        for (std::size_t i = from; i < to; ++i) {
            const CallPtr call = asked[i - from];
            auto wait = finished(shared_->engine, call, deadline);
            if (!co_await std::move(wait)) co_return make(Error::no_answer);
            if (unanswered(call->rc)) co_return make(Error::no_answer);
            if (call->rc == ZNONODE) continue;
            if (call->rc == ZOK && call->session == 0) continue;
            // One that may not be read may be a session's.
            if (call->rc != ZOK && call->rc != ZNOAUTH) co_return from_rc(call->rc);
            co_return spi::Failure(errc::kind_mismatch,
                                   words_for_stranger(parent + "/" + strangers[i]));
        }
    }
    co_return spi::Failure();
}

awaitable<spi::Failure> ZooKeeperBackend::no_claims_beside(spi::Attempt* a, QueueNodePtr p,
                                                           SessionPtr session) {
    p->strangers = false;  // the next list may bring others
    auto looking =
        no_claims(session, p->parent, session->queues().strangers_beside(*p), a->deadline);
    const spi::Failure failed = co_await std::move(looking);
    if (failed && failed.why != errc::kind_mismatch) p->strangers = true;
    co_return failed;
}

void ZooKeeperBackend::remove_folders(const SessionPtr& session, const std::string& name) {
    // Another layout may count them. The servers keep those in which somebody stands.
    for (const std::string_view folder : {permits_folder, turns_folder})
        session->handle().remove(parent_path(shared_->options, name) + "/" + std::string(folder));
}

awaitable<spi::Failure> ZooKeeperBackend::agree(spi::Attempt* a, QueueNodePtr p,
                                                SessionPtr session) {
    auto asking =
        p->limit > 0 ? agree_on_limit(a, p, session) : no_permits(p, session, a->deadline);
    co_return co_await std::move(asking);
}

awaitable<spi::Failure> ZooKeeperBackend::no_permits(QueueNodePtr p, SessionPtr session,
                                                     boot_clock::time_point deadline) {
    std::vector<std::string> before;
    for (int look = 0; look < 2; ++look) {
        std::string folder = p->parent + "/";
        folder += permits_folder;
        CallPtr listed = session->handle().list(folder);
        auto wait = finished(shared_->engine, listed, deadline);
        if (!co_await std::move(wait)) co_return make(Error::no_answer);
        if (unanswered(listed->rc)) co_return make(Error::no_answer);
        if (listed->rc != ZOK && listed->rc != ZNONODE) co_return from_rc(listed->rc);
        auto& now = listed->children;
        if (look > 0) {
            std::erase_if(now, [&](const std::string& node) {
                return std::find(before.begin(), before.end(), node) == before.end();
            });
        }
        if (now.empty()) {
            p->to_agree = false;
            p->waited = true;  // the next one has to look as well
            co_return spi::Failure();
        }
        before = std::move(now);
        if (look > 0) break;
        spi::net::Gate pause;
        auto passed = pause.wait(shared_->engine, boot_clock::now() + passing);
        co_await std::move(passed);
    }
    co_return make_error_code(errc::kind_mismatch);
}

awaitable<spi::Failure> ZooKeeperBackend::agree_on_limit(spi::Attempt* a, QueueNodePtr p,
                                                         SessionPtr session) {
    const std::string name = parent_path(shared_->options, p->name);
    for (int round = 0; round < most_rounds; ++round) {
        if (!p->own_node) session->own().read_name(*p);
        const CallPtr node = std::exchange(p->own_node, nullptr);
        const CallPtr line = std::exchange(p->own_line, nullptr);
        auto one = finished(shared_->engine, node, a->deadline);
        if (!co_await std::move(one)) co_return make(Error::no_answer);
        auto other = finished(shared_->engine, line, a->deadline);
        if (!co_await std::move(other)) co_return make(Error::no_answer);
        if (unanswered(node->rc) || unanswered(line->rc)) {
            if (!session->handle().connected()) co_return make(Error::no_answer);
            continue;
        }
        if (node->rc != ZOK) co_return from_rc(node->rc);
        if (line->rc != ZOK) co_return from_rc(line->rc);
        const bool in_line = std::any_of(line->children.begin(), line->children.end(),
                                         [](const std::string& n) { return stands_in_line(n); });
        const bool ours = node->text.empty() || read_limit(node->text);
        if (!ours)
            co_return spi::Failure(errc::kind_mismatch, "the data of the node " + name +
                                                            " are no limit of Holdfast's; kazoo's "
                                                            "Semaphore keeps its own there");
        if (in_line) co_return spi::Failure(errc::kind_mismatch);
        std::vector<std::string> strangers;
        for (const std::string& n : line->children)
            if (is_stranger(n, false)) strangers.push_back(n);
        if (!strangers.empty()) {
            auto looking = no_claims(session, name, std::move(strangers), a->deadline);
            const spi::Failure failed = co_await std::move(looking);
            if (failed) co_return failed;
        }
        if (node->text == p->name_says) {
            p->to_agree = false;
            co_return spi::Failure();
        }
        // None yet, so nobody of ours holds; what is in the folder is Curator's, which keeps none.
        std::vector<std::string> folders;
        if (!node->text.empty()) {
            // Another one, which stays while anything is in the folders: not these nodes, either.
            session->own().leave(p, Outcome::abandoned);
            auto leaving = left(p, a->deadline);
            if (!co_await std::move(leaving)) co_return make(Error::no_answer);
            for (const std::string_view folder : {permits_folder, turns_folder})
                folders.push_back(name + "/" + std::string(folder));
        }
        CallPtr written =
            session->handle().remove_and_set(folders, name, p->name_says, node->version);
        auto done = finished(shared_->engine, written, a->deadline);
        if (!co_await std::move(done)) co_return make(Error::no_answer);
        if (written->rc == ZNOTEMPTY) co_return make_error_code(errc::kind_mismatch);
        if (folders.empty()) continue;
        p = session->own().make_place(*a);
        a->place = p;
        session->own().enter(p->turn);
        co_return spi::Failure();
    }
    co_return make_error_code(errc::kind_mismatch);
}

}  // namespace holdfast::zookeeper
