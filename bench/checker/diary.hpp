// What one process of the bench does with its locks, as the checker of histories wants to have it:
// a recorder that knows leases. Without a file it records nothing, so that callers need not ask.
#pragma once
#include <chrono>
#include <exception>
#include <filesystem>
#include <holdfast/lock.hpp>
#include <optional>
#include <string_view>

#include "checker/recorder.hpp"

namespace holdfast::bench {

class Diary {
public:
    /// One acquisition, from the question to the answer of its release.
    struct Entry {
        history::Ticket ticket;
        history::Nanos until = 0;  ///< the last one believed
    };

    /// `file`: as Histories::file gave it; empty: nothing is recorded.
    Diary(const std::filesystem::path& file, std::string_view who);
    /// While an exception unwinds the stack it leaves open what is open.
    ~Diary();
    Diary(const Diary&) = delete;
    Diary& operator=(const Diary&) = delete;

    /// The number of a name for asked(). `promised` by the lock: a token, an order; null: nothing.
    std::uint16_t name(std::string_view, const Capabilities* promised);

    Entry asked(std::uint16_t name);
    void in_line(const Entry&);  ///< somebody saw it there
    void granted(Entry&, const Lease&);
    /// Holds what nobody gave: an unlocked control, or a lock that only its process can see.
    void granted(Entry&);
    void failed(const Entry&, error_code);
    /// Says that the belief goes on, when it was renewed since.
    void believes(Entry&, const Lease&);
    /// Before the release is sent, with what it will say.
    void releasing(Entry&, const Lease&, Outcome = Outcome::done);
    void releasing(Entry&);
    void released(const Entry&, ReleaseResult);
    void lost(Entry&, const Lease&);
    /// Holds what was granted for so long, or until it is lost; releases it in the first case.
    void hold(Entry&, Lease&, std::chrono::nanoseconds);

    /// Something went wrong: acquisitions may be left open.
    void leave_open();

private:
    std::optional<history::Recorder> recorder_;
    int exceptions_ = std::uncaught_exceptions();
};

}  // namespace holdfast::bench
