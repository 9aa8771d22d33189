// What a process does with its locks, appended to a file of its own as it happens.
#pragma once
#include <atomic>
#include <filesystem>
#include <string_view>

#include "checker/format.hpp"

namespace holdfast::bench::history {

/// CLOCK_BOOTTIME, as all times here.
Nanos now() noexcept;

/// One acquisition under way; a value.
struct Ticket {
    std::uint64_t id = 0;
    std::uint16_t name = 0;
};

/// One per process and file. Each call makes one record by one write() of 64 bytes to a file opened
/// with O_APPEND: no lock, no allocation, no buffer; whatever was called is in the file, even when
/// the process is killed the moment after. Thread-safe. Blocks for as long as the write() does.
///
/// The order of calls is what makes a history sound: invoked() before the acquisition is asked for,
/// granted() or failed() after it returned, releasing() *before* the release is sent, released()
/// after it returned. Records of a store belong inside the store's own atomic step.
class Recorder {
public:
    /// Makes the file. `process` is what reports call it; 16 bytes are kept. Errors:
    /// std::system_error when there is a file already or it cannot be made.
    Recorder(const std::filesystem::path& file, std::string_view process);
    /// Ends the file in order, which claims that no acquisition of it is left open; unless
    /// leave_open() was called.
    ~Recorder();
    Recorder(const Recorder&) = delete;
    Recorder& operator=(const Recorder&) = delete;

    /// Makes the name known, once for each: the number for the calls below. At most 65535 of them.
    std::uint16_t name(std::string_view, Declared = declares_nothing) noexcept;

    Ticket invoked(std::uint16_t name) noexcept;
    /// Somebody (this process or another one) saw the request in the queue.
    void in_line(const Ticket&) noexcept;
    void granted(const Ticket&, Nanos until, std::uint64_t token, std::string_view owner,
                 Previous) noexcept;
    void failed(const Ticket&, Outcome, std::string_view owner = {}) noexcept;
    /// The lease says that it is valid until then.
    void renewed(const Ticket&, Nanos until) noexcept;
    /// `until` as the lease says just now; the belief ends here or there, whichever is earlier.
    void releasing(const Ticket&, Nanos until, bool abandoned = false) noexcept;
    void released(const Ticket&, Answer) noexcept;
    /// The holder was told; `until` is the last one that the lease named.
    void lost(const Ticket&, Nanos until) noexcept;

    /// A write that arrived at a store; `writer` is Ticket::id when the store was told, else 0.
    void write(std::uint16_t name, std::uint64_t store, std::uint64_t token, std::uint64_t writer,
               bool accepted, bool fenced) noexcept;
    /// Somebody looked who holds the name; the look began at `asked`.
    void seen(std::uint16_t name, std::string_view owner, Nanos asked) noexcept;

    /// A server was killed, between `from` and now; once it is dead, and before it is started
    /// again.
    void server_killed(Nanos from) noexcept;

    /// The file shall end as that of a killed process: something went wrong, and acquisitions of it
    /// may be left open.
    void leave_open() noexcept { claims_end_ = false; }

    /// False once a record could not be written (a full disk); from then on none is.
    bool good() const noexcept { return good_; }

private:
    void append(Record&) noexcept;
    void append(Kind, const Ticket&, std::uint8_t detail, Nanos until = 0) noexcept;

    int fd_ = -1;
    std::uint64_t base_ = 0;
    std::atomic<std::uint32_t> acquisitions_{0}, names_{0};
    std::atomic<bool> good_{true}, claims_end_{true};
};

}  // namespace holdfast::bench::history
