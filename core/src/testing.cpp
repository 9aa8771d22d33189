// A memory backend that is late or silent when the test says so.
#include "holdfast/testing.hpp"

#include <algorithm>
#include <atomic>
#include <boost/asio/post.hpp>
#include <map>
#include <mutex>
#include <type_traits>

#include "holdfast/spi/net/gate.hpp"
#include "holdfast/spi/registry.hpp"

namespace holdfast::testing {
namespace {

class FakeBackend;

/// What all clients of one server have in common.
struct Faults {
    std::atomic<milliseconds::rep> delay{0};
    std::atomic<bool> silent{false};
    std::mutex mutex;
    std::vector<FakeBackend*> clients;  ///< under the mutex, as is every use of one

    void lose(const std::string& owner, errc why);
};

class FakeBackend final : public spi::Backend {
public:
    FakeBackend(std::shared_ptr<Faults> faults, std::unique_ptr<spi::Backend> inner,
                spi::Context context)
        : faults_(std::move(faults)), inner_(std::move(inner)), context_(context) {
        const std::lock_guard hold(faults_->mutex);
        faults_->clients.push_back(this);
    }
    ~FakeBackend() override {
        const std::lock_guard hold(faults_->mutex);
        std::erase(faults_->clients, this);
    }

    const Capabilities& capabilities() const noexcept override { return inner_->capabilities(); }
    std::size_t max_batch(spi::Verb v) const noexcept override { return inner_->max_batch(v); }

    spi::awaitable<void> attempt(std::span<spi::Attempt* const> items) override {
        return ask(items, &spi::Backend::attempt, [](spi::Attempt& a) {
            a.outcome = spi::Attempt::Failed(make_error_code(errc::unavailable));
        });
    }
    spi::awaitable<void> withdraw(std::span<spi::Attempt* const> items) override {
        return ask(items, &spi::Backend::withdraw, [](spi::Attempt&) {});
    }
    spi::awaitable<void> renew(std::span<spi::Held* const> items) override {
        return ask(items, &spi::Backend::renew,
                   [](spi::Held& h) { h.renewal_error = make_error_code(errc::unavailable); });
    }
    spi::awaitable<void> release(std::span<spi::Held* const> items) override {
        return ask(items, &spi::Backend::release, [](spi::Held&) {});
    }
    spi::awaitable<spi::Answer<spi::Survey>> survey(std::string_view name,
                                                    boot_clock::time_point deadline) override {
        return answered(inner_->survey(name, deadline), deadline);
    }
    spi::awaitable<spi::Answer<spi::Survey>> tell(std::string_view name, const HolderFilter& which,
                                                  spi::Tell what,
                                                  boot_clock::time_point deadline) override {
        return answered(inner_->tell(name, which, what, deadline), deadline);
    }
    spi::awaitable<spi::Answer<std::string>> note(std::string_view name,
                                                  std::optional<std::string> text,
                                                  boot_clock::time_point deadline) override {
        return answered(inner_->note(name, std::move(text), deadline), deadline);
    }
    spi::awaitable<spi::Answer<std::vector<std::string>>> list(
        std::string_view prefix, std::size_t limit, boot_clock::time_point deadline) override {
        return answered(inner_->list(prefix, limit, deadline), deadline);
    }
    void watch(std::string_view name, bool on) override { inner_->watch(name, on); }
    spi::awaitable<void> close() override {
        waits_.open();
        auto closing = inner_->close();
        co_await std::move(closing);
    }

    /// Any thread, under the mutex of the faults.
    void lose(std::string owner, errc why) {
        asio::post(context_.engine, [&events = context_.events, owner = std::move(owner), why] {
            events.lost(owner, make_error_code(why));
        });
    }

private:
    /// One verb; `give_up` is called for each item when there is no answer. Each step by itself:
    /// g++ 12 miscompiles a co_await inside a condition.
    template <class Item>
    spi::awaitable<void> ask(std::span<Item* const> items,
                             spi::awaitable<void> (spi::Backend::*verb)(std::span<Item* const>),
                             void (*give_up)(std::type_identity_t<Item>&)) {
        auto answering = answers(items.front()->deadline);
        const bool answered = co_await std::move(answering);
        if (answered) {
            auto asking = ((*inner_).*verb)(items);
            co_return co_await std::move(asking);
        }
        for (Item* item : items)
            give_up(*item);
    }
    /// An awaitable begins only when it is awaited.
    template <class T>
    spi::awaitable<spi::Answer<T>> answered(spi::awaitable<spi::Answer<T>> asking,
                                            boot_clock::time_point deadline) {
        auto answering = answers(deadline);
        const bool answered = co_await std::move(answering);
        if (!answered) co_return spi::Failure(errc::unavailable);
        co_return co_await std::move(asking);
    }
    /// After the delay. False: the server is silent, or the deadline came first.
    spi::awaitable<bool> answers(boot_clock::time_point deadline) {
        const auto due = boot_clock::now() + milliseconds(faults_->delay);
        const auto until = std::min(due, deadline);
        if (boot_clock::now() < until) {
            auto waiting = waits_.wait(context_.engine, until);
            co_await std::move(waiting);
        }
        co_return due < deadline && !faults_->silent;
    }

    const std::shared_ptr<Faults> faults_;
    const std::unique_ptr<spi::Backend> inner_;
    const spi::Context context_;
    spi::net::Gate waits_;
};

void Faults::lose(const std::string& owner, errc why) {
    const std::lock_guard hold(mutex);
    for (FakeBackend* c : clients)
        c->lose(owner, why);
}

/// The memory backend, with these faults.
spi::Descriptor with(const spi::Descriptor& memory, const std::shared_ptr<Faults>& faults) {
    spi::Descriptor d = memory;
    d.make = [make = memory.make, faults](const spi::Settings& s,
                                          spi::Context c) -> std::unique_ptr<spi::Backend> {
        return std::make_unique<FakeBackend>(faults, make(s, c), c);
    };
    return d;
}

constinit std::atomic<unsigned> last_server{0};

std::string fresh_name() {
    return "fake-server-" + std::to_string(++last_server);
}

Client opened(const std::string& url, ClientOptions options) {
    Diagnostics why;
    Diagnostics* const asked = options.diagnostics;
    if (asked == nullptr) options.diagnostics = &why;
    auto client = Client::open(url, options);
    if (!client)
        throw boost::system::system_error(client.error(),
                                          "holdfast::testing::FakeServer: " + why.text());
    return std::move(*client);
}

}  // namespace

struct FakeServer::State {
    const std::string url = "memory:" + fresh_name();
    const std::shared_ptr<Faults> faults = std::make_shared<Faults>();
    spi::Registry registry;  ///< of its clients
    Client other;            ///< has no faults
    std::mutex mutex;
    std::map<std::string, Lease> held;  ///< by the other client
};

FakeServer::FakeServer() : state_(std::make_unique<State>()) {
    const spi::Descriptor* const memory = spi::Registry::linked().find("memory");
    if (memory == nullptr)
        throw boost::system::system_error(
            make_error_code(errc::not_supported),
            "holdfast::testing::FakeServer needs the memory backend: link Holdfast::memory");
    state_->registry.add(with(*memory, state_->faults));
    state_->other = opened(state_->url, {});
}
FakeServer::~FakeServer() = default;

Client FakeServer::client(std::string_view settings, ClientOptions options) const {
    options.registry = &state_->registry;
    const std::string question = settings.empty() ? "" : "?" + std::string(settings);
    return opened(state_->url + question, std::move(options));
}

void FakeServer::hold(const std::string& name, const LockOptions& options) {
    auto lease = state_->other.make_lock(name, options).value()->try_acquire().value();
    const std::lock_guard hold(state_->mutex);
    state_->held[name] = std::move(lease);
}

void FakeServer::free(const std::string& name, Outcome outcome) {
    Lease lease;
    {
        const std::lock_guard hold(state_->mutex);
        const auto at = state_->held.find(name);
        if (at == state_->held.end()) return;
        lease = std::move(at->second);
        state_->held.erase(at);
    }
    lease.release(outcome);
}

void FakeServer::lose(const std::string& name, errc why) {
    BreakOptions options;
    options.now = true;
    const auto broken = state_->other.break_lock(name, options);
    if (!broken) return;
    for (const Broken& b : *broken)
        state_->faults->lose(b.holder.owner, why);
}

void FakeServer::request_release(const std::string& name) {
    (void)state_->other.request_release(name);
}

void FakeServer::answer_after(milliseconds delay) {
    state_->faults->delay = delay.count();
}

void FakeServer::unreachable(bool yes) {
    state_->faults->silent = yes;
}

}  // namespace holdfast::testing
