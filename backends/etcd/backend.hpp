// The etcd backend. Each owner has a key below that of the lock, in the order of creation, as in
// `etcdctl lock` and etcd's own lock service. What is asked and what an answer means is in
// operations.hpp; this drives them, and has what operators ask.
#pragma once

#include <boost/container/small_vector.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/spi/check.hpp"
#include "leases.hpp"
#include "members.hpp"
#include "operations.hpp"
#include "queue_cache.hpp"

namespace holdfast::etcd {

class EtcdBackend final : public spi::Backend {
public:
    EtcdBackend(const spi::Settings&, spi::Context);
    ~EtcdBackend() override;

    const Capabilities& capabilities() const noexcept override { return capabilities_; }
    std::size_t max_batch(spi::Verb) const noexcept override { return 32; }

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
    void watch(std::string_view name, bool on) override;
    awaitable<void> close() override;
    std::string serving() const override { return members_->serving(); }
    std::uint64_t requests() const noexcept override {
        return shared_->requests.load(std::memory_order_relaxed);
    }

private:
    using Operations = boost::container::small_vector<Operation*, 4>;
    /// The keys of a line, and how many of them hold.
    struct QueueSnapshot {
        std::vector<KeyValue> all;  ///< in the order of their creation
        std::size_t holders = 0;
    };

    /// One operation for each item.
    template <class Op, class Item, class... More>
    awaitable<void> run(std::span<Item* const>, More&...);
    /// Runs them to their ends.
    awaitable<void> drive(Operations);
    /// Gives up one that has waited for the others of its call for more than half of its time: what
    /// is sent with little time left ends in doubt.
    static bool is_late(Operation&, boot_clock::time_point begun);
    /// Those that share the next request: no two that clash.
    static Operations together(const Operations&);
    /// Gives out the leases that are there; whether that is all of them.
    bool have_leases(const Operations&);
    awaitable<void> get_leases(const Operations&);
    /// One request for all of these, and its answer to each.
    awaitable<void> exchange(const Operations&);
    static Members::Length write(const Operations&, rpc::TxnRequest& to);
    /// A transaction and its answer, whose memory is used again.
    struct Messages {
        rpc::TxnRequest request;
        rpc::TxnResponse answer;
    };
    std::unique_ptr<Messages> take_messages();
    void give_back(std::unique_ptr<Messages>);
    /// What a transaction has come to, which has so many inside or is the only one.
    result<Result> read(const rpc::TxnResponse&, const Members::Answer&, std::size_t parts,
                        std::int64_t newest_before, RequestInfo&);
    /// One transaction that is no operation's.
    awaitable<result<Result>> transact(Messages&, boot_clock::time_point deadline, RequestInfo&,
                                       Members::Length length = Members::Length::brief);
    /// For each answer of the store: one that was asked for after another and has an earlier
    /// revision, or comes from a cluster made anew, is of a store that forgot what is known here.
    void compare(std::int64_t newest_before, std::int64_t revision);
    awaitable<result<Result>> ask(std::string begin, std::string end, std::int64_t limit,
                                  bool keys_only, boot_clock::time_point deadline, RequestInfo&);
    /// The time left of the leases; nullopt where it is not known.
    awaitable<std::map<std::int64_t, std::optional<milliseconds>>> left_of(
        std::vector<KeyValue>, boot_clock::time_point deadline);
    awaitable<spi::Answer<QueueSnapshot>> standing(std::string_view name,
                                                   boot_clock::time_point deadline);
    /// Writes a request to holders into their keys, or deletes the keys. Returns the holders
    /// reached.
    awaitable<spi::Answer<std::vector<KeyValue>>> reach(std::string_view name, HolderFilter,
                                                        spi::Tell, boot_clock::time_point deadline);
    /// Facts that one member reports; "silent" if it does not answer.
    awaitable<spi::Facts> member_facts(spi::Endpoint, boot_clock::time_point deadline);
    /// What the user may not do, as Rights::missing; nullopt where nobody says.
    awaitable<std::optional<std::string>> missing_rights(boot_clock::time_point deadline);
    void tend();
    awaitable<void> keep_waiting();

    const Capabilities capabilities_;
    std::shared_ptr<Shared> shared_;
    std::shared_ptr<Members> members_;
    std::shared_ptr<Leases> leases_;
    std::shared_ptr<QueueCache> queues_;
    std::vector<std::int64_t> asking_;  ///< leases of grants whose requests are under way
    std::int64_t newest_ = 0;           ///< revision that an answer had
    unsigned generation_ = 0;           ///< Members::generation(), as it was known last
    std::vector<std::unique_ptr<Messages>> spare_;
    bool tending_ = false;
    std::shared_ptr<bool> gone_ = std::make_shared<bool>(false);  ///< this object is
    std::shared_ptr<spi::net::Gate> tend_gate_ = std::make_shared<spi::net::Gate>();
};

}  // namespace holdfast::etcd
