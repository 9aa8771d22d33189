// The ZooKeeper backend: core's verbs on sessions and places. Operators' calls are in operate.cpp.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "session.hpp"

namespace holdfast::zookeeper {

class ZooKeeperBackend final : public spi::Backend {
public:
    ZooKeeperBackend(const spi::Settings&, spi::Context);

    const Capabilities& capabilities() const noexcept override { return capabilities_; }
    ~ZooKeeperBackend() override;

    awaitable<void> attempt(std::span<spi::Attempt* const>) override;
    awaitable<void> withdraw(std::span<spi::Attempt* const>) override;
    awaitable<void> renew(std::span<spi::Held* const>) override;
    awaitable<void> release(std::span<spi::Held* const>) override;

    awaitable<spi::Answer<spi::Survey>> survey(std::string_view name,
                                               boot_clock::time_point deadline) override;
    awaitable<spi::Answer<spi::Survey>> tell(std::string_view name, const HolderFilter&, spi::Tell,
                                             boot_clock::time_point deadline) override;
    awaitable<spi::Answer<std::string>> note(std::string_view name, std::optional<std::string> text,
                                             boot_clock::time_point deadline) override;
    awaitable<spi::Answer<std::vector<std::string>>> list(std::string_view prefix,
                                                          std::size_t limit,
                                                          boot_clock::time_point deadline) override;
    awaitable<spi::Answer<Examination>> examine(boot_clock::time_point deadline) override;
    void watch(std::string_view name, bool on) override {
        shared_->observed.set(parent_path(shared_->options, name), name, on);
    }
    awaitable<void> close() override;
    std::string serving() const override;
    std::uint64_t requests() const noexcept override { return shared_->requests.load(); }

private:
    /// Facts that one server reports; "srvr" is empty if it does not answer.
    awaitable<spi::Facts> server_facts(spi::Endpoint, boot_clock::time_point deadline);
    awaitable<std::string> refused_rights(SessionPtr, boot_clock::time_point deadline);
    /// Limit of simultaneous requests for one call: after the call is given up, the servers still
    /// answer them.
    static constexpr std::size_t asked_at_once = 256;
    struct QueuedNode;     ///< one node in line, and what it says of its maker
    struct QueueSnapshot;  ///< all nodes of one name
    SessionPtr session_for(milliseconds ttl, milliseconds lock_delay = {});
    /// Ends retired and idle sessions.
    void tidy();
    awaitable<void> end_session(SessionPtr);
    awaitable<void> settle(spi::Attempt*, QueueNodePtr);
    awaitable<void> granted(spi::Attempt*, QueueNodePtr, SessionPtr);
    awaitable<void> forget_records(SessionPtr, std::string newest, boot_clock::time_point deadline);
    /// No error if none of these nodes belongs to a session, so that no client holds by them. Else
    /// kind_mismatch, with text.
    awaitable<spi::Failure> no_claims(SessionPtr, std::string parent,
                                      std::vector<std::string> strangers,
                                      boot_clock::time_point deadline);
    /// The same for the strangers in the place's last list.
    awaitable<spi::Failure> no_claims_beside(spi::Attempt*, QueueNodePtr, SessionPtr);
    /// Whether its nodes count beside those of the other kind. If the limit differs and no client
    /// holds by it, enters anew: a->place is then another place.
    awaitable<spi::Failure> agree(spi::Attempt*, QueueNodePtr, SessionPtr);
    awaitable<spi::Failure> agree_on_limit(spi::Attempt*, QueueNodePtr, SessionPtr);
    awaitable<spi::Failure> no_permits(QueueNodePtr, SessionPtr, boot_clock::time_point deadline);
    /// Removes the folders of permits after a semaphore was refused.
    void remove_folders(const SessionPtr&, const std::string& name);
    awaitable<error_code> read_mark(SessionPtr, QueueNodePtr, boot_clock::time_point deadline);
    awaitable<error_code> mark(SessionPtr, QueueNodePtr, boot_clock::time_point deadline);
    awaitable<bool> left(QueueNodePtr, boot_clock::time_point deadline);
    /// kind_mismatch, with text, if a client claims the name by another layout.
    awaitable<spi::Answer<QueueSnapshot>> standing(SessionPtr, std::string name,
                                                   boot_clock::time_point deadline);
    awaitable<spi::Answer<QueueSnapshot>> standing_for_permits(SessionPtr, std::string parent,
                                                               boot_clock::time_point deadline);
    awaitable<result<std::vector<std::string>>> children(SessionPtr, std::string path,
                                                         boot_clock::time_point deadline);
    awaitable<result<std::vector<QueuedNode>>> read_nodes(SessionPtr, std::string parent,
                                                          std::vector<std::string> nodes,
                                                          boot_clock::time_point deadline);
    /// How many of them, from the head, hold the lock.
    static std::size_t holders_among(const std::vector<QueuedNode>&);
    /// The holders that the filter selects; not_held if there are none.
    awaitable<spi::Answer<std::vector<QueuedNode>>> holding(SessionPtr, std::string name,
                                                            HolderFilter,
                                                            boot_clock::time_point deadline);
    /// Writes `what` into their nodes; returns those that still exist.
    awaitable<result<std::vector<QueuedNode>>> mark_nodes(SessionPtr, std::vector<QueuedNode>,
                                                          bool NodeData::*what,
                                                          boot_clock::time_point deadline);
    /// Deletes their nodes; returns those that still existed.
    awaitable<result<std::vector<QueuedNode>>> delete_nodes(SessionPtr, std::vector<QueuedNode>,
                                                            boot_clock::time_point deadline);

    const std::shared_ptr<Shared> shared_;
    const Capabilities capabilities_;
    std::map<std::pair<milliseconds, milliseconds>, SessionPtr> sessions_;  ///< ttl, lock_delay
    std::vector<SessionPtr> retired_;
    boot_clock::time_point tidied_;
    bool closed_ = false;
};

}  // namespace holdfast::zookeeper
