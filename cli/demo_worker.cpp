// One process of a demonstration: a counter's increments, a buyer, a waiter, a holder.
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <random>
#include <thread>

#include "demo_stage.hpp"
#include "exit_code.hpp"
#include "message.hpp"

namespace holdfast::cli {
namespace {

using std::chrono::microseconds;

class Worker {
public:
    explicit Worker(DemoJob job) : job_(std::move(job)), random_(job_.seed) {}

    int run() {
        if (job_.locked && !open()) return exit_unavailable;
        if (job_.role == "count") return repeat([this] { return count(); });
        if (job_.role == "buy") return repeat([this] { return buy(); });
        if (job_.role == "queue") return queue();
        if (job_.role == "hold") return hold();
        return exit_usage;
    }

private:
    bool open() {
        const char* target = std::getenv("HOLDFAST_DEMO_TARGET");
        const char* config = std::getenv("HOLDFAST_DEMO_CONFIG");
        Globals g;
        g.url = target ? target : "";
        g.config_file = config ? config : "";
        int exit = 0;
        client_ = open_client(g, exit);
        if (!client_) return false;
        LockOptions options;
        if (job_.role == "hold") options.ttl = milliseconds(2000);
        auto lock = client_->make_lock(job_.name, options);
        if (!lock) return false;
        lock_ = *std::move(lock);
        return true;
    }

    /// Something between reading and writing, as every real job has.
    void work() {
        std::this_thread::sleep_for(
            microseconds(std::uniform_int_distribution<int>(50, 400)(random_)));
    }

    /// Without the lock nothing else makes the workers overlap: they all begin when the last is up.
    void begin_together() {
        const std::string here = job_.file + "-here";
        append_line(here, "here");
        wait_for_lines(here, static_cast<std::size_t>(job_.crowd), milliseconds(5000));
    }

    template <class Step>
    int repeat(Step step) {
        begin_together();
        for (long i = 0; i < job_.count; ++i) {
            if (const int exit = step()) return exit;
        }
        return exit_ok;
    }

    /// Runs `critical` under the lock, or without one.
    template <class Critical>
    int guarded(Critical critical) {
        if (!job_.locked) {
            critical();
            return exit_ok;
        }
        Diagnostics mistakes;
        AcquireOptions options;
        options.wait = milliseconds(20'000);
        options.diagnostics = &mistakes;
        auto lease = lock_->acquire(options);
        if (!lease) {
            complain(lease.error(), mistakes);
            return exit_code(lease.error());
        }
        critical();
        lease->release();
        return exit_ok;
    }

    int count() {
        return guarded([this] {
            const long n = read_number(job_.file);
            work();
            write_number(job_.file, n + 1);
        });
    }

    int buy() {
        return guarded([this] {
            const long stock = read_number(job_.file);
            if (stock <= 0) return;
            work();
            append_line(job_.second_file, "sold");
            write_number(job_.file, stock - 1);
        });
    }

    int queue() {
        append_line(job_.second_file, "here");
        return guarded([this] { append_line(job_.file, std::to_string(job_.count)); });
    }

    /// Holds, says so, and writes when it is told to by SIGUSR1, without looking at its lease: the
    /// programmer's mistake that a store with tokens forgives.
    int hold() {
        sigset_t set;
        ::sigemptyset(&set);
        ::sigaddset(&set, SIGUSR1);
        ::pthread_sigmask(SIG_BLOCK, &set, nullptr);  // the client's threads take none
        const auto lease = lock_->acquire();
        if (!lease) return exit_code(lease.error());
        const std::uint64_t token = lease->fencing_token().value;
        append_line(job_.second_file, std::to_string(token));
        int number = 0;
        ::sigwait(&set, &number);
        const bool accepted =
            fenced_write(job_.file, token, "worker-" + std::to_string(job_.count));
        append_line(job_.second_file, accepted ? "accepted" : "refused");
        return exit_ok;
    }

    DemoJob job_;
    std::mt19937_64 random_;
    std::optional<Client> client_;
    std::unique_ptr<Lock> lock_;
};

}  // namespace

std::optional<int> demo_worker(int argc, char** argv) {
    if (argc != 10 || std::string_view(argv[1]) != "__demo") return {};
    DemoJob job;
    job.role = argv[2];
    job.name = argv[3];
    job.file = argv[4];
    job.second_file = argv[5];
    job.count = std::strtol(argv[6], nullptr, 10);
    job.crowd = std::strtol(argv[7], nullptr, 10);
    job.locked = argv[8][0] == '1';
    job.seed = std::strtoull(argv[9], nullptr, 10);
    return Worker(std::move(job)).run();
}

}  // namespace holdfast::cli
