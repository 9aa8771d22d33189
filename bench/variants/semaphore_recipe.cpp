#include "variants/semaphore_recipe.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "bench.hpp"
#include "variants/zookeeper_session.hpp"

namespace holdfast::bench {

namespace {

using NodeKind = ZooKeeperSession::Kind;

class SemaphoreRecipe final : public Recipe {
public:
    explicit SemaphoreRecipe(const SemaphoreHow& how) : how_(how) {}

    /// A node stays in the way of all later attempts when the answer to its creation or removal is
    /// lost, as after 7 s in which nobody drives the session. With its session it goes.
    bool take(const spi::Attempt& a) override {
        try {
            return try_to_take(a);
        } catch (const SelfCheck&) {
            session_.reset();
            throw;
        }
    }
    ReleaseResult give_back(const std::string& name, const std::string&) override {
        const auto mine = leases_.find(name);
        if (mine == leases_.end()) return ReleaseResult::already_expired;
        const auto gone = remove(mine->second);
        leases_.erase(mine);
        if (gone.ok()) return ReleaseResult::released;
        session_.reset();
        return ReleaseResult::already_expired;
    }
    std::optional<milliseconds> look_within() const override { return how_.pause; }

private:
    bool try_to_take(const spi::Attempt& a) {
        const std::string base = make_parents(std::string(a.name));
        const std::string locks = base + "/locks", leases = base + "/leases";
        const std::string place = stand(locks + "/lock-");
        std::string lease;
        if (list(locks).front() == place.substr(locks.size() + 1)) {
            lease = stand(leases + "/lease-");
            if (list(leases).size() > 1) {  // somebody else holds it
                clear(lease);
                lease.clear();
            }
        }
        clear(place);
        if (lease.empty()) return false;
        leases_[std::string(a.name)] = lease;
        return true;
    }
    ZooKeeperSession& session() {
        if (!session_) session_ = std::make_unique<ZooKeeperSession>(how_.servers, how_.session);
        return *session_;
    }
    /// The node of a name, with its two parents.
    std::string make_parents(std::string name) {
        std::replace(name.begin(), name.end(), '/', '-');
        std::string base = "/doc-semaphore-" + name;
        if (made_.contains(base)) return base;
        for (const char* part : {"", "/locks", "/leases"}) {
            const auto made = session().create(base + part, NodeKind::persistent);
            if (!made.ok() && !made.exists_already()) throw SelfCheck("doc-zookeeper: parent");
        }
        made_.insert(base);
        return base;
    }
    std::string stand(const std::string& prefix) {
        count();
        const auto made = session().create(prefix, NodeKind::sequential);
        if (!made.ok()) throw SelfCheck("doc-zookeeper: create " + prefix);
        return made.path;
    }
    std::vector<std::string> list(const std::string& parent) {
        count();
        auto answer = session().children(parent);
        if (!answer.ok() || answer.names.empty()) throw SelfCheck("doc-zookeeper: list " + parent);
        std::sort(answer.names.begin(), answer.names.end());
        return answer.names;
    }
    void clear(const std::string& path) {
        if (!remove(path).ok()) throw SelfCheck("doc-zookeeper: remove " + path);
    }
    ZooKeeperAnswer remove(const std::string& path) {
        count();
        return session().remove(path);
    }

    SemaphoreHow how_;
    std::unique_ptr<ZooKeeperSession> session_;
    std::set<std::string> made_;
    std::map<std::string, std::string> leases_;  ///< by name
};

}  // namespace

std::unique_ptr<Recipe> make_semaphore_recipe(const SemaphoreHow& how) {
    return std::make_unique<SemaphoreRecipe>(how);
}

}  // namespace holdfast::bench
