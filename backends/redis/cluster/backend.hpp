// Redis Cluster: each call goes to the server that has the slot of its name, which is a Redis
// backend of its own; one that is sent elsewhere goes again.
#pragma once
#include <memory>
#include <vector>

#include "members.hpp"

namespace holdfast::redis {

class ClusterBackend final : public spi::Backend {
public:
    ClusterBackend(const spi::Settings&, spi::Context);

    const Capabilities& capabilities() const noexcept override { return capabilities_; }
    std::size_t max_batch(spi::Verb) const noexcept override { return 32; }
    const void* server_of(std::string_view name) const noexcept override;
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
    std::string serving() const override { return members_->serving(); }
    std::uint64_t requests() const noexcept override;

private:
    /// One of the verbs, and where its items keep what became of them.
    template <class Item>
    struct Verb {
        awaitable<void> (spi::Backend::*run)(std::span<Item* const>);
        error_code (*error)(const Item&);
        void (*fail)(Item&, const spi::Failure&);
    };
    template <class Item>
    struct Part {
        Node* to;
        std::vector<Item*> items;
    };
    /// Runs it at the servers of the items' slots, again for those that are sent elsewhere.
    template <class Item>
    awaitable<void> drive(std::span<Item* const>, Verb<Item>);
    template <class Item>
    std::vector<Part<Item>> parts_of(const std::vector<Item*>&, const Verb<Item>&);
    template <class T>
    using Call = std::function<awaitable<spi::Answer<T>>(RedisBackend&)>;
    /// Asks the server of the name's slot; again when it is sent elsewhere.
    template <class T>
    awaitable<spi::Answer<T>> at_slot_of(std::string_view name, boot_clock::time_point deadline,
                                         Call<T>);
    Slot slot_for(std::string_view name) const;
    /// All that have slots.
    awaitable<spi::Answer<std::vector<Node*>>> primaries(boot_clock::time_point deadline);

    const spi::Settings settings_;
    const Options options_;
    const Capabilities capabilities_;
    spi::Context context_;
    std::shared_ptr<Members> members_;
};

}  // namespace holdfast::redis
