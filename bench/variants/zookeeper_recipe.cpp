// doc-zookeeper://: one ephemeral node is the lock; it is deleted by its path, even another
// client's, or only where it belongs to the own session. Or Curator's semaphore, see
// semaphore_recipe.hpp. While its holder works the client is not driven.
#include "bench.hpp"
#include "variants/documents.hpp"
#include "variants/recipe.hpp"
#include "variants/semaphore_recipe.hpp"
#include "variants/zookeeper_session.hpp"

namespace holdfast::bench {

namespace {

struct How {
    std::string servers;
    milliseconds session{}, pause{};
    bool checked = false;
};

class ZooKeeperRecipe final : public Recipe {
public:
    explicit ZooKeeperRecipe(How how) : how_(std::move(how)) {}

    bool take(const spi::Attempt& a) override {
        const auto answer = ask([&](ZooKeeperSession& s) {
            return s.create("/" + std::string(a.name), ZooKeeperSession::Kind::ephemeral);
        });
        if (answer.ok()) taken_by_ = session_->id();
        if (!answer.ok() && !answer.exists_already()) throw SelfCheck("doc-zookeeper: create");
        return answer.ok();
    }
    ReleaseResult give_back(const std::string& name, const std::string&) override {
        const std::string path = "/" + name;
        if (how_.checked) {
            const auto node = ask([&](ZooKeeperSession& s) { return s.get(path); });
            if (node.no_node()) return ReleaseResult::already_expired;
            if (node.owner != taken_by_) return ReleaseResult::owned_by_other;
        }
        return ask([&](ZooKeeperSession& s) { return s.remove(path); }).ok()
                   ? ReleaseResult::released
                   : ReleaseResult::already_expired;
    }
    std::optional<milliseconds> look_within() const override { return how_.pause; }

private:
    /// Asks again after a lost connection, with a new session when the old one is over: as any
    /// client does that meant to go on.
    template <class Ask>
    ZooKeeperAnswer ask(Ask one) {
        ZooKeeperAnswer answer;
        for (int i = 0; i < 5; ++i) {
            count();
            answer = one(session());
            if (!answer.disconnected()) break;
        }
        return answer;
    }
    ZooKeeperSession& session() {
        if (session_) session_->settle();
        if (session_ && session_->expired()) session_.reset();
        if (!session_) session_ = std::make_unique<ZooKeeperSession>(how_.servers, how_.session);
        return *session_;
    }

    How how_;
    std::unique_ptr<ZooKeeperSession> session_;
    long long taken_by_ = 0;
};

}  // namespace

spi::Descriptor zookeeper_recipes() {
    using spi::OptionType;
    spi::Descriptor d;
    d.name = "doc-zookeeper";
    d.schemes = {"doc-zookeeper"};
    d.summary = "the documents' lock on one ZooKeeper node, for comparison";
    d.example = "doc-zookeeper://127.0.0.1:2181?give=by-path";
    d.hosts = spi::Descriptor::Hosts::many;
    d.default_port = 2181;
    d.path = spi::Descriptor::Path::none;
    d.options = {
        {.name = "form",
         .type = OptionType::choice,
         .fallback = "node",
         .meaning = "One node, or a semaphore of one lease.",
         .choices = "node|semaphore"},
        {.name = "give",
         .type = OptionType::choice,
         .fallback = "by-path",
         .meaning = "Delete by path, or only a node of the own session.",
         .choices = "by-path|checked"},
        {.name = "session",
         .type = OptionType::duration,
         .fallback = "1s",
         .meaning = "Session time-out."},
        {.name = "pause",
         .type = OptionType::duration,
         .fallback = "50ms",
         .meaning = "How long a waiter sleeps before it tries again."},
    };
    d.capabilities = [](const spi::Settings&) { return Capabilities(SafetyClass::d, {}); };
    d.make = [](const spi::Settings& s, spi::Context) {
        How how;
        for (const spi::Endpoint& e : s.hosts)
            how.servers += (how.servers.empty() ? "" : ",") + e.host + ":" + std::to_string(e.port);
        how.session = s.duration("session");
        how.pause = s.duration("pause");
        how.checked = s.text("give") == "checked";
        if (s.text("form") == "semaphore") {
            const SemaphoreHow semaphore{how.servers, how.session, how.pause};
            return make_recipe_backend([semaphore] { return make_semaphore_recipe(semaphore); });
        }
        return make_recipe_backend([how] { return std::make_unique<ZooKeeperRecipe>(how); });
    };
    return d;
}

}  // namespace holdfast::bench
