// The wait of `run`.
#include "wait_for_lock.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <exception>
#include <stop_token>

#include "as_json.hpp"
#include "background.hpp"
#include "duration.hpp"
#include "holder_text.hpp"
#include "message.hpp"
#include "terminal.hpp"

namespace holdfast::cli {
namespace {

/// Shorter waits are not worth a word.
constexpr milliseconds before_first_word{300};
constexpr milliseconds between_looks{1000};

class Watcher {
public:
    Watcher(const Client& client, const std::vector<std::string>& names, StatusFd& status)
        : client_(client),
          names_(names),
          status_(status),
          live_(::isatty(STDERR_FILENO) == 1 && !voice().quiet) {}

    int fd() const { return look_.busy() ? look_.fd() : -1; }

    void tick() {
        const bool wanted = !told_ || live_;
        if (!wanted || look_.busy() || boot_clock::now() < next_) return;
        // Without a thread for it the wait goes on all the same.
        if (!look_.try_start([this](const std::stop_token&) { return look(); }))
            next_ = boot_clock::now() + between_looks;
    }

    void looked() {
        next_ = boot_clock::now() + between_looks;
        try {
            tell(look_.take());
        } catch (const std::exception&) {
            // It says nothing; the next look may.
        }
    }

    void done() {
        if (live_) progress({});
    }

private:
    void tell(const result<Inspection>& seen) {
        // Only a held lock is waited for; a server that is slow or away is not.
        const bool held = seen ? !is_free(*seen) : seen.error() == errc::not_supported;
        if (!told_ && !held) return;
        std::string text =
            "waiting for " + (seen && held ? in_quotes(seen->name) : in_quotes(names_));
        boost::json::object facts;
        if (seen && held) {
            text += ": " + described_holders(*seen);
            facts["name"] = clean_utf8(seen->name);
            if (!seen->holders.empty()) facts["holder"] = as_json(seen->holders.front());
        }
        if (seen) {
            const std::size_t place = own_place(*seen);
            if (place > 0) {
                text +=
                    fmt::format("; position {} of {} in the queue", place, seen->waiters.size());
                facts["place"] = place;
            }
        }
        if (!told_) status_.write("waiting", std::move(facts));
        if (live_)
            progress(text);
        else if (!told_)
            note(text);
        told_ = true;
    }

    /// Of the one that is waited for: the first that somebody else has.
    result<Inspection> look() const {
        result<Inspection> seen = error_code{};
        for (const std::string& name : names_) {
            seen = client_.inspect(name);
            if (!seen || (!is_free(*seen) && !all_ours(*seen))) break;
        }
        return seen;
    }

    const Client& client_;
    const std::vector<std::string>& names_;
    StatusFd& status_;
    const bool live_;
    bool told_ = false;
    boot_clock::time_point next_ = boot_clock::now() + before_first_word;
    Background<result<Inspection>> look_;
};

/// A grant that a release handed over is short until its waiter has spoken (with Redis 3 s at
/// most): less than the guardian may need to stop a command.
void renew_short(const LeaseSet& set, milliseconds least) {
    for (std::size_t i = 0; i < set.size(); ++i) {
        if (set[i].valid_until() - boot_clock::now() >= least) continue;
        // Not answered: the command is not started, or is stopped, in time.
        if (auto handle = set[i].share()) {
            (void)handle->renew();
            (void)handle->release();
        }
    }
}

}  // namespace

WaitResult wait_for_locks(const Client& client, const std::vector<std::unique_ptr<Lock>>& locks,
                          const RunOptions& o, milliseconds least, Signals& signals,
                          const Guardian& guardian, StatusFd& status) {
    WaitResult out;
    Watcher watcher(client, o.names, status);
    Background<result<LeaseSet>> acquire;
    AcquireAllOptions options;
    options.wait = o.wait;
    options.note = o.label;
    options.diagnostics = &out.diagnostics;
    options.failed = &out.failed;
    std::vector<Part> parts;
    for (const auto& lock : locks)
        parts.emplace_back(*lock, o.mode, o.permits);
    acquire.start([parts, options, least](const std::stop_token& token) {
        auto set = acquire_all(parts, options, token);
        if (set) renew_short(*set, least);
        return set;
    });
    while (true) {
        std::array<pollfd, 4> fds{{{acquire.fd(), POLLIN, 0},
                                   {signals.fd(), POLLIN, 0},
                                   {watcher.fd(), POLLIN, 0},
                                   {out.guardian_died ? -1 : guardian.fd(), POLLIN, 0}}};
        ::poll(fds.data(), fds.size(), 100);
        status.flush();
        flush_messages();
        if (fds[0].revents != 0) break;
        while (const auto number = signals.next()) {
            if (*number == SIGTSTP) Terminal::stop_self();
            if (!ends_things(*number)) continue;
            out.signal = *number;
            acquire.request_stop();
        }
        if (fds[3].revents != 0) {
            // It reports nothing before it has something to guard.
            out.guardian_died = true;
            acquire.request_stop();
        }
        if (fds[2].revents != 0) watcher.looked();
        if (!acquire.stop_requested()) watcher.tick();
    }
    watcher.done();
    out.set = acquire.take();
    return out;
}

}  // namespace holdfast::cli
