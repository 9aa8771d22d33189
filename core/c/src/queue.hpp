// Where calls that do not block leave their answers. An eventfd says that there are some, so that
// no thread of Holdfast's enters a program that is not made for it: an interpreter, or an event
// loop.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>

#include "failure.hpp"
#include "handles.hpp"
#include "holdfast/detail/fork_guarded.hpp"
#include "holdfast/event.hpp"

namespace holdfast::c {

class Call;

/// Thread-safe. In a forked child nothing happens: the eventfd is shared with the parent.
class Queue {
public:
    struct Answer {
        std::uint64_t call = 0;
        std::unique_ptr<hf_lease> lease;
        Failure why;
        std::optional<std::string> json;  ///< of a question
    };

    Queue();
    ~Queue();
    Queue(const Queue&) = delete;
    Queue& operator=(const Queue&) = delete;

    int fd() const noexcept { return state_.forked() ? -1 : fd_; }
    bool forked() const noexcept { return state_.forked(); }
    /// Gives it a number, by which it can be cancelled until its answer is taken.
    std::uint64_t add(std::shared_ptr<Call>);
    void answer(Answer);
    /// Forgets a call that did not start.
    void remove(std::uint64_t call);
    /// No lease comes out of it from here on: what it acquires, or has acquired, is released.
    void cancel(std::uint64_t call);
    std::optional<Answer> next();
    /// Keeps what a client reports: `most` of these, of which the oldest that is no loss goes
    /// first.
    void report(const Event&);
    std::optional<Event> next_report();
    /// Cancels all calls, and drops their answers from here on.
    void close();

private:
    static constexpr std::size_t most = 4096;
    struct Pending {
        std::shared_ptr<Call> call;
        bool cancelled = false;
    };
    struct State {
        bool empty() const noexcept { return answers.empty() && reports.empty(); }
        std::map<std::uint64_t, Pending> calls;
        std::deque<Answer> answers;
        std::deque<Event> reports;
        std::uint64_t dropped = 0;  ///< reports, since the last one that was taken
        std::uint64_t last = 0;
        bool closed = false;
    };
    /// What waits is the first, or was the last: the eventfd says so.
    void signal() const noexcept;
    void clear() const noexcept;

    const int fd_;
    ForkGuarded<State> state_;
};

}  // namespace holdfast::c
