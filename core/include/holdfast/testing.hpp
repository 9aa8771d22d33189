// For tests of your own code: locks whose server can be busy, slow or unreachable, or forget a
// holder. Needs no server, but the memory backend: link Holdfast::memory.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "holdfast/client.hpp"

namespace holdfast::testing {

/// A lock server inside this process, which the test controls. Its clients are real ones: waits,
/// renewals, losses, cancellation and events are those of production. Must outlive its clients.
/// Thread-safe.
class HOLDFAST_EXPORT FakeServer {
public:
    /// Throws boost::system::system_error (not_supported) when the memory backend is not linked in.
    FakeServer();
    FakeServer(const FakeServer&) = delete;
    FakeServer& operator=(const FakeServer&) = delete;
    ~FakeServer();

    /// Opens a client of this server. `settings` are those of a URL: "ttl=300ms&namespace=a".
    /// `options.registry` is replaced. Throws boost::system::system_error (bad_config).
    Client client(std::string_view settings = {}, ClientOptions options = {}) const;

    /// Another client acquires the name, and holds it until free(). Throws
    /// boost::system::system_error with the errors of Lock::try_acquire: contended, where the code
    /// under test holds it.
    void hold(const std::string& name, const LockOptions& = {});
    /// The other client releases it. Does nothing where it does not hold it.
    void free(const std::string& name, Outcome = Outcome::done);
    /// Every holder of the name loses it now: the name is free, and their leases report `why`.
    void lose(const std::string& name, errc why = errc::lost);
    /// Asks the holders of the name to release it (Lease::release_requested).
    void request_release(const std::string& name);
    /// From now on every answer takes so long.
    void answer_after(milliseconds delay);
    /// From now on there is no answer: acquisitions fail with `unavailable`, renewals put leases at
    /// risk until they are lost, and releases are unreachable. False: there are answers again.
    void unreachable(bool yes = true);

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace holdfast::testing
