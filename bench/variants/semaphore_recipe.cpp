#include "variants/semaphore_recipe.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "bench.hpp"
#include "variants/zookeeper_session.hpp"

namespace holdfast::bench {

namespace {

using NodeKind = ZooKeeperSession::Kind;

class SemaphoreRecipe final : public Recipe {
public:
    explicit SemaphoreRecipe(const SemaphoreHow& how)
        : how_(how), session_(how.servers, how.session) {}

    bool take(const spi::Attempt& a) override {
        const std::string base = make_parents(std::string(a.name));
        const std::string locks = base + "/locks", leases = base + "/leases";
        const std::string place = stand(locks + "/lock-");
        std::string lease;
        if (list(locks).front() == place.substr(locks.size() + 1)) {
            lease = stand(leases + "/lease-");
            if (list(leases).size() > 1) {  // somebody else holds it
                remove(lease);
                lease.clear();
            }
        }
        remove(place);
        if (lease.empty()) return false;
        leases_[std::string(a.name)] = lease;
        return true;
    }
    ReleaseResult give_back(const std::string& name, const std::string&) override {
        const auto mine = leases_.find(name);
        if (mine == leases_.end()) return ReleaseResult::already_expired;
        const auto gone = remove(mine->second);
        leases_.erase(mine);
        return gone.ok() ? ReleaseResult::released : ReleaseResult::already_expired;
    }
    std::optional<milliseconds> look_within() const override { return how_.pause; }

private:
    /// The node of a name, with its two parents.
    std::string make_parents(std::string name) {
        std::replace(name.begin(), name.end(), '/', '-');
        std::string base = "/doc-semaphore-" + name;
        if (made_.insert(base).second)
            for (const char* part : {"", "/locks", "/leases"}) {
                const auto made = session_.create(base + part, NodeKind::persistent);
                if (!made.ok() && !made.exists_already()) throw SelfCheck("doc-zookeeper: parent");
            }
        return base;
    }
    std::string stand(const std::string& prefix) {
        count();
        const auto made = session_.create(prefix, NodeKind::sequential);
        if (!made.ok()) throw SelfCheck("doc-zookeeper: create " + prefix);
        return made.path;
    }
    std::vector<std::string> list(const std::string& parent) {
        count();
        auto answer = session_.children(parent);
        if (!answer.ok() || answer.names.empty()) throw SelfCheck("doc-zookeeper: list " + parent);
        std::sort(answer.names.begin(), answer.names.end());
        return answer.names;
    }
    ZooKeeperAnswer remove(const std::string& path) {
        count();
        return session_.remove(path);
    }

    SemaphoreHow how_;
    ZooKeeperSession session_;
    std::set<std::string> made_;
    std::map<std::string, std::string> leases_;  ///< by name
};

}  // namespace

std::unique_ptr<Recipe> make_semaphore_recipe(const SemaphoreHow& how) {
    return std::make_unique<SemaphoreRecipe>(how);
}

}  // namespace holdfast::bench
