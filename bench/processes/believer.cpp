#include "processes/believer.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <fstream>
#include <holdfast/lab/wait_until.hpp>
#include <sstream>

#include "bench.hpp"
#include "faults/holder.hpp"

namespace holdfast::bench {

namespace {

class Journal {
public:
    explicit Journal(const std::string& file)
        : fd_(open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {
        if (fd_ < 0) throw SelfCheck("no journal: " + file);
    }
    ~Journal() { close(fd_); }
    Journal(const Journal&) = delete;
    Journal& operator=(const Journal&) = delete;

    void add(const std::string& line) {
        const std::string text = line + "\n";
        if (write(fd_, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
            throw SelfCheck("the journal takes no more");
    }

private:
    int fd_;
};

}  // namespace

WorkerOptions believer(const Deployment& d, const std::string& name, int ttl_ms,
                       const std::filesystem::path& journal, const std::filesystem::path& history) {
    WorkerOptions how;
    how.job = "believe";
    how.guard = "holdfast";
    how.store = journal.string();
    how.url = d.open;
    how.name = d.prefix + name;
    how.ttl_ms = ttl_ms;
    how.history = history.string();
    return how;
}

Belief read_belief(const std::filesystem::path& journal) {
    Belief belief;
    std::ifstream in(journal);
    for (std::string line;
         std::getline(in, line) && !in.eof();) {  // the last one may be unfinished
        std::istringstream words(line);
        std::string kind;
        double at = 0;
        words >> kind >> at;
        if (kind == "granted") {
            belief.granted_ms = at;
            words >> belief.token;
        } else if (kind == "valid") {
            belief.last_valid_ms = at;
            words >> belief.promised_until_ms;
        } else if (kind == "invalid") {
            belief.invalid_ms = at;
        } else if (kind == "told") {
            belief.told_ms = at;
        }
    }
    return belief;
}

void believe(const WorkerOptions& options, Lease lease, Diary& diary, Diary::Entry entry) {
    Journal journal(options.store);
    journal.add(fmt::format("granted {:.3f} {}", boot_ms(), lease.fencing_token().value));
    const auto told = [&] { journal.add(fmt::format("told {:.3f}", boot_ms())); };
    const std::stop_callback callback(lease.lost(), told);
    constexpr std::chrono::hours until_killed{1};
    const bool ended = lab::reached(
        [&] {
            const double now = boot_ms();
            const double until = boot_ms(lease.valid_until());
            if (!lease.valid()) return true;
            journal.add(fmt::format("valid {:.3f} {:.3f}", now, until));
            diary.believes(entry, lease);
            return false;
        },
        until_killed);
    if (ended) {
        journal.add(fmt::format("invalid {:.3f}", boot_ms()));
        diary.lost(entry, lease);
    }
    (void)lab::stays_true([] { return true; }, until_killed);
}

}  // namespace holdfast::bench
