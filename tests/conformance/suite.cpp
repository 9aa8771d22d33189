#include "suite.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>

namespace suite {

std::string fresh_name(const std::string& what) {
    static std::atomic<unsigned> next{0};
    return "suite/" + what + "-" + std::to_string(::getpid()) + "-" + std::to_string(++next);
}

hf::Client open_url(const std::string& url, hf::ClientOptions options) {
    return test_support::open(url, std::move(options));
}

hf::Client open(const std::string& query, hf::ClientOptions options) {
    return open_url(backend().url(query), std::move(options));
}

hf::Client open_proxied(const std::string& query) {
    return open_url(backend().proxied_url(query));
}

bool has(Capability c) {
    static const hf::Capabilities all = open().capabilities();
    return all.has(c);
}

void require_clean(const std::string& name, hf::milliseconds within) {
    const auto client = open();
    std::string seen;
    const auto clean = [&] {
        const auto found = client.inspect(name);
        seen = found ? std::to_string(found->holders.size()) + " hold, " +
                           std::to_string(found->waiters.size()) + " wait"
                     : found.error().message();
        if (found)
            for (const hf::NodeView& n : found->nodes)
                seen += "; " + n.node + ": " + n.owner + " " +
                        std::to_string(n.ttl_left.value_or(-1ms).count()) + " ms " +
                        n.error.message();
        // Not at a single node, either, where there are several.
        return found && found->holders.empty() && found->waiters.empty() &&
               std::all_of(found->nodes.begin(), found->nodes.end(),
                           [](const hf::NodeView& n) { return n.owner.empty() && !n.error; });
    };
    for (Trial trial; trial.again();) {
        const bool soon = lab::reached(clean, within);
        INFO(name << ": " << seen);
        trial.holds(soon, within, "it is neither held nor queued for");
    }
}

void wait_held_everywhere(hf::Lease& lease) {
    const auto client = open();
    const std::string name(lease.name());
    lab::wait_until(
        [&] {
            const auto found = client.inspect(name);
            if (!found) return false;
            return found->nodes.size() < 2 ||
                   std::none_of(found->nodes.begin(), found->nodes.end(),
                                [](const hf::NodeView& n) { return n.owner.empty(); }) ||
                   !lease.renew();
        },
        5s, "it is held at each node");
}

namespace {

std::size_t entries_of(const char* folder) {
    std::size_t n = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder))
        ++n;
    return n;
}

}  // namespace

std::size_t threads_now() {
    return entries_of("/proc/self/task");
}
std::size_t descriptors_now() {
    return entries_of("/proc/self/fd");
}

lab::ProcessOptions worker_in(const std::string& mode, const std::string& url,
                              const std::string& name, const lab::TempDir& folder,
                              const std::string& number, const std::string& rounds) {
    lab::ProcessOptions o;
    o.argv = {std::getenv("HOLDFAST_TEST_WORKER"),
              url,
              name,
              folder.path().string(),
              number,
              rounds,
              mode};
    o.log = folder / "log";
    return o;
}

void require_ended(lab::Process& worker, int code) {
    const auto ended = worker.wait(cap(30s));
    INFO(worker.log_tail());
    REQUIRE(ended.has_value());
    CHECK_FALSE(ended->by_signal);
    CHECK(ended->code == code);
}

bool is_free(const hf::Client& client, const std::string& name) {
    const auto found = client.inspect(name);
    return found && found->holders.empty();
}

std::optional<std::size_t> waiters_of(const std::string& name) {
    static const hf::Client client = open();
    return waiters_of(client, name);
}

}  // namespace suite
