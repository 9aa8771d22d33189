// The Redlock backend: each verb runs one round per lock, with all rounds of a call at once.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "drive.hpp"

namespace holdfast::redlock {

template <class T>
using awaitable = asio::awaitable<T>;

class RedlockBackend final : public spi::Backend {
public:
    RedlockBackend(const spi::Settings&, spi::Context);

    const Capabilities& capabilities() const noexcept override { return capabilities_; }
    std::size_t max_batch(spi::Verb) const noexcept override { return 128; }
    error_code check_name(std::string_view name) const noexcept override;

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
    std::unique_ptr<spi::Lane> open_lane() override;
    awaitable<void> close() override;
    std::string serving() const override { return deployment_->set->serving(); }
    std::uint64_t requests() const noexcept override { return deployment_->set->requests(); }

private:
    struct NodeReply {
        std::unique_ptr<Reply> reply;  ///< null: no answer
        error_code why;
    };
    /// Sends one command to each node (none where it is empty) and returns the replies. With a
    /// verb, a command is its keys and arguments.
    awaitable<std::vector<NodeReply>> ask_all(std::vector<std::vector<std::string>> commands,
                                              const ScriptCall*, boot_clock::time_point deadline);
    /// Set when fewer than a majority answered, with what each said.
    spi::Failure no_quorum(const std::vector<NodeReply>&) const;
    bool alike(const spi::Attempt&) const noexcept;
    /// It leaves a mark, so that the nodes tell it.
    bool stands(const spi::Attempt& a) const noexcept {
        return a.queue && a.repeated && deployment_->listening;
    }
    void forget_mark(const spi::Attempt&);
    /// For callers that come soon: which names are busy, and where somebody waits. `asked`: the
    /// attempt that asked for each name, for all that are alike. `now`: before it asked.
    void remember_busy(std::span<spi::Attempt* const> all,
                       const std::map<std::string_view, spi::Attempt*>& asked,
                       boot_clock::time_point now);
    /// The value of each holder of a Survey at the nodes.
    using Values = std::vector<std::string>;
    awaitable<spi::Answer<spi::Survey>> look(std::string_view name, boot_clock::time_point deadline,
                                             Values& held);
    /// `free_in` stays empty when no node has the value any more.
    awaitable<spi::Failure> break_one(std::string_view name, const std::string& value, bool now,
                                      boot_clock::time_point deadline,
                                      std::optional<milliseconds>& free_in);
    awaitable<result<std::vector<std::string>>> scan(std::size_t node, std::string pattern,
                                                     boot_clock::time_point deadline);

    /// A name that was just found busy, so that its waiters need not ask again yet, and who comes
    /// new leaves a mark at once.
    struct Busy {
        boot_clock::time_point until, waited_for;
        milliseconds look_within;
    };

    const Capabilities capabilities_;
    spi::Context context_;
    const milliseconds share_;  ///< how long waiters of this client share an attempt's answer
    std::map<std::string, Busy, std::less<>> busy_;
    std::shared_ptr<NodeSet> set_;
    std::shared_ptr<tls::Context> tls_;  // of all nodes; null: no TLS
    std::shared_ptr<Deployment> deployment_;
};

}  // namespace holdfast::redlock
