// The in-process backend: reference semantics, and the folder to copy for a new backend.
#include <atomic>

#include "holdfast/spi/register_backend.hpp"
#include "store.hpp"

namespace holdfast::memory {
namespace {

Capabilities promises() {
    using enum Capability;
    return {SafetyClass::in_process,
            {fencing, fifo, notified, renewal, previous_holder, inspect, list, break_lock,
             survives_client_clock_jump, shared, semaphore, downgrade, lock_delay, min_hold,
             release_request, watch}};
}

class MemoryLane final : public spi::Lane {
public:
    MemoryLane(std::shared_ptr<Store> store, std::string prefix, spi::BackendEvents& events)
        : store_(std::move(store)), prefix_(std::move(prefix)), events_(&events) {}
    void attempt(spi::Attempt& a) noexcept override {
        store_->attempt(a, prefix_ + std::string(a.name), *events_);
    }
    void release(spi::Held& h) noexcept override {
        store_->release(h, prefix_ + std::string(h.name));
    }

private:
    std::shared_ptr<Store> store_;
    std::string prefix_;
    spi::BackendEvents* events_;
};

class MemoryBackend final : public spi::Backend {
public:
    MemoryBackend(const spi::Settings& s, spi::Context c)
        : store_(Store::named(s.path)), prefix_(s.text("namespace")), events_(&c.events) {}

    const Capabilities& capabilities() const noexcept override { return capabilities_; }
    std::size_t max_batch(spi::Verb) const noexcept override { return 1024; }

    spi::awaitable<void> attempt(std::span<spi::Attempt* const> items) override {
        for (spi::Attempt* a : items)
            store_->attempt(*a, prefix_ + std::string(a->name), *events_);
        co_return;
    }
    spi::awaitable<void> withdraw(std::span<spi::Attempt* const> items) override {
        for (spi::Attempt* a : items) {
            store_->withdraw(*a, prefix_ + std::string(a->name));
            a->withdrawal = {};
        }
        co_return;
    }
    spi::awaitable<void> renew(std::span<spi::Held* const> items) override {
        for (spi::Held* h : items)
            store_->renew(*h, prefix_ + std::string(h->name));
        co_return;
    }
    spi::awaitable<void> release(std::span<spi::Held* const> items) override {
        for (spi::Held* h : items)
            store_->release(*h, prefix_ + std::string(h->name));
        co_return;
    }
    spi::awaitable<spi::Answer<spi::Survey>> survey(std::string_view name,
                                                    boot_clock::time_point) override {
        co_return store_->survey(prefix_ + std::string(name));
    }
    spi::awaitable<spi::Answer<spi::Survey>> tell(std::string_view name, const HolderFilter& which,
                                                  spi::Tell what, boot_clock::time_point) override {
        co_return store_->tell(prefix_ + std::string(name), which, what);
    }
    spi::awaitable<spi::Answer<std::string>> note(std::string_view name,
                                                  std::optional<std::string> text,
                                                  boot_clock::time_point) override {
        co_return store_->note(prefix_ + std::string(name), std::move(text));
    }
    spi::awaitable<spi::Answer<std::vector<std::string>>> list(std::string_view prefix,
                                                               std::size_t limit,
                                                               boot_clock::time_point) override {
        auto names = store_->list(prefix_ + std::string(prefix), limit);
        for (std::string& n : names)
            n.erase(0, prefix_.size());
        co_return names;
    }
    void watch(std::string_view name, bool on) override {
        store_->watch(prefix_ + std::string(name), {events_, std::string(name)}, on);
    }
    spi::awaitable<void> close() override {
        store_->forget(*events_);
        co_return;
    }
    std::unique_ptr<spi::Lane> open_lane() override {
        return std::make_unique<MemoryLane>(store_, prefix_, *events_);
    }

private:
    const Capabilities capabilities_ = promises();
    std::shared_ptr<Store> store_;
    std::string prefix_;
    spi::BackendEvents* events_;
};

spi::Descriptor describe() {
    spi::Descriptor d;
    d.name = "memory";
    d.schemes = {"memory"};
    d.summary = "the memory of one process, for tests";
    d.example = "memory:";
    d.hosts = spi::Descriptor::Hosts::none;
    d.path = spi::Descriptor::Path::optional;
    d.path_meaning = "a name; clients of one process that use the same one share their locks";
    d.capabilities = [](const spi::Settings&) { return promises(); };
    d.make = [](const spi::Settings& s, spi::Context c) -> std::unique_ptr<spi::Backend> {
        if (!s.name.empty())
            c.events.warn(
                "the memory backend was chosen from a configuration file: it does not "
                "exclude other processes");
        return std::make_unique<MemoryBackend>(s, c);
    };
    return d;
}

}  // namespace
}  // namespace holdfast::memory

HOLDFAST_REGISTER_BACKEND(memory, holdfast::memory::describe())
