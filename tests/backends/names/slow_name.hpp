// A host name whose look-up hangs until the test says otherwise: this program's own getaddrinfo(3)
// asks here first. No name server is needed, and none is asked.
#pragma once
#include <string>

namespace names_tests {

/// While it lives, `host` is known to this process only, and means `address`. At its end, look-ups
/// that still hang fail. Thread-safe.
class SlowName {
public:
    SlowName(std::string host, std::string address);
    ~SlowName();
    SlowName(const SlowName&) = delete;
    SlowName& operator=(const SlowName&) = delete;

    /// From now on, and for those who wait.
    void answer();
    /// It means that address from now on.
    void means(std::string address);
    /// How many look-ups hang.
    int waiting() const;

private:
    const std::string host_;
};

}  // namespace names_tests
