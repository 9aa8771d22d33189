// The ZooKeeper backend: core's verbs on sessions and places. What operators ask is in operate.cpp.
#pragma once
#include <map>
#include <vector>

#include "session.hpp"

namespace holdfast::zookeeper {

using SessionPtr = std::shared_ptr<Session>;

class ZooKeeperBackend final : public spi::Backend {
public:
    ZooKeeperBackend(const spi::Settings&, spi::Context);

    const Capabilities& capabilities() const noexcept override { return capabilities_; }
    ~ZooKeeperBackend() override;

    awaitable<void> attempt(std::span<spi::Attempt* const>) override;
    awaitable<void> withdraw(std::span<spi::Attempt* const>) override;
    awaitable<void> renew(std::span<spi::Held* const>) override;
    awaitable<void> release(std::span<spi::Held* const>) override;

    awaitable<result<Inspection>> inspect(std::string_view name, boot_clock::time_point deadline,
                                          std::string& detail) override;
    awaitable<result<std::vector<std::string>>> list(std::string_view prefix, std::size_t limit,
                                                     boot_clock::time_point deadline,
                                                     std::string& detail) override;
    awaitable<result<std::vector<Broken>>> break_lock(std::string_view name,
                                                      const BreakOptions& options,
                                                      boot_clock::time_point deadline,
                                                      std::string& detail) override;
    awaitable<result<std::vector<Holder>>> request_release(std::string_view name,
                                                           const HolderFilter&,
                                                           boot_clock::time_point deadline,
                                                           std::string& detail) override;
    awaitable<result<Examination>> examine(boot_clock::time_point deadline,
                                           std::string& detail) override;
    awaitable<void> close() override;
    std::uint64_t requests() const noexcept override { return shared_->requests.load(); }

private:
    /// What one server says of itself; "srvr" is empty where it does not answer.
    awaitable<spi::Facts> server_facts(spi::Endpoint, boot_clock::time_point deadline);
    /// Requests at once of a question with many: if it is given up, the servers still answer them.
    static constexpr std::size_t asked_at_once = 256;
    struct Standing;  ///< one node in line, with what it says of its maker
    struct Queue;     ///< all of one name
    SessionPtr session_for(milliseconds ttl, milliseconds lock_delay = {});
    /// Retired and idle sessions end.
    void tidy();
    awaitable<void> end_session(SessionPtr);
    awaitable<void> settle(spi::Attempt*, QueueNodePtr);
    awaitable<void> granted(spi::Attempt*, QueueNodePtr, SessionPtr);
    /// None of these lives with a session, so nobody holds by one; else kind_mismatch, with words.
    awaitable<error_code> no_claims(SessionPtr, std::string parent,
                                    std::vector<std::string> strangers,
                                    boot_clock::time_point deadline, std::string* detail);
    /// Of the place's last list.
    awaitable<error_code> no_claims_beside(spi::Attempt*, QueueNodePtr, SessionPtr);
    /// Whether its nodes count beside those of the other kind. With another limit, which nobody
    /// holds by, it enters anew: a->place is another one then.
    awaitable<error_code> agree(spi::Attempt*, QueueNodePtr, SessionPtr);
    awaitable<error_code> agree_on_limit(spi::Attempt*, QueueNodePtr, SessionPtr);
    awaitable<error_code> no_permits(QueueNodePtr, SessionPtr, boot_clock::time_point deadline);
    /// Those of permits, where a semaphore was refused.
    void remove_folders(const SessionPtr&, const std::string& name);
    awaitable<error_code> read_mark(SessionPtr, QueueNodePtr, boot_clock::time_point deadline);
    awaitable<error_code> mark(SessionPtr, QueueNodePtr, boot_clock::time_point deadline);
    awaitable<bool> left(QueueNodePtr, boot_clock::time_point deadline);
    /// kind_mismatch, with words, where somebody claims it by another layout.
    awaitable<result<Queue>> standing(SessionPtr, std::string name, boot_clock::time_point deadline,
                                      std::string& detail);
    awaitable<result<Queue>> standing_for_permits(SessionPtr, std::string parent,
                                                  boot_clock::time_point deadline);
    awaitable<result<std::vector<std::string>>> children(SessionPtr, std::string path,
                                                         boot_clock::time_point deadline);
    awaitable<result<std::vector<Standing>>> read_nodes(SessionPtr, std::string parent,
                                                        std::vector<std::string> nodes,
                                                        boot_clock::time_point deadline);
    /// How many of them, at the head, hold it.
    static std::size_t holders_among(const std::vector<Standing>&);
    /// The holders that are meant; not_held when there is none.
    awaitable<result<std::vector<Standing>>> holding(SessionPtr, std::string name, HolderFilter,
                                                     boot_clock::time_point deadline,
                                                     std::string& detail);
    /// Writes that into their nodes, and returns those that are there still.
    awaitable<result<std::vector<Standing>>> tell(SessionPtr, std::vector<Standing>,
                                                  bool NodeData::*what,
                                                  boot_clock::time_point deadline);

    const std::shared_ptr<Shared> shared_;
    const Capabilities capabilities_;
    std::map<std::pair<milliseconds, milliseconds>, SessionPtr> sessions_;  ///< ttl, lock_delay
    std::vector<SessionPtr> retired_;
    boot_clock::time_point tidied_;
    bool closed_ = false;
};

}  // namespace holdfast::zookeeper
