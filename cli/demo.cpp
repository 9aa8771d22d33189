// `holdfast demo`: the experiments of the documentation, with real processes.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <iostream>
#include <thread>

#include "demo_picture.hpp"
#include "demo_stage.hpp"
#include "duration.hpp"
#include "exit_code.hpp"
#include "message.hpp"
#include "option_values.hpp"

namespace holdfast::cli {
namespace {

class Demo {
public:
    Demo(const Globals& g, std::uint64_t seed)
        : seed_(seed),
          // Twenty processes at a busy disk make each other wait for more than the usual 2 s.
          target_(g.target_source().empty()
                      ? "sqlite://" + folder_.file("locks.db") + "?request_timeout=10s"
                      : g.target()),
          config_(g.config_file),
          globals_(g),
          prefix_(fmt::format("holdfast-demo/{}/", ::getpid())) {
        globals_.url = target_;
        globals_.backend.clear();
        globals_.local = false;
    }

    int run(const std::string& scene) {
        if (scene.empty()) return tour();
        say("seed {}", seed_);
        if (scene == "counter") return counter();
        if (scene == "oversell") return oversell();
        if (scene == "queue") return queue();
        return takeover(false);
    }

private:
    template <class... A>
    static void say(fmt::format_string<A...> text, A&&... a) {
        std::cout << fmt::format(text, std::forward<A>(a)...) << std::endl;
    }

    /// A worker that failed leaves the others' result unfinished, which is no fault of the lock.
    int verdict(bool exact, std::string_view good, std::string_view bad) {
        if (!finished_) {
            say("NOT finished: a worker failed, for the reason above.");
            return exit_internal;
        }
        say("{}", exact ? good : bad);
        return exact ? exit_ok : exit_internal;
    }

    // --- all that matters, in pictures

    int tour() {
        constexpr long processes = 4, each = 100, all = processes * each;
        const std::string where = globals_.url.starts_with("sqlite://" + folder_.file(""))
                                      ? "a temporary SQLite file, no server"
                                      : "the backend that you named";
        say("Real processes, {}.\n", where);
        say("{} processes read a number from a file, add one, and write it back, {} times each:\n",
            processes, each);
        long exact = 0;
        for (const bool locked : {false, true}) {
            const auto line = [&](long n) {
                return fmt::format("  {:<14} {} {:>3} of {}", locked ? "with the lock" : "without",
                                   bar(n, all), n, all);
            };
            const long n =
                counted(locked, processes, each, [&](long now) { draw_line(line(now), false); });
            draw_line(line(n) + (n < all ? fmt::format(", {} lost", all - n) : ""), true);
            exact = n;
        }
        if (!finished_ || exact != all) return verdict(false, "", "NOT exact: the lock failed.");
        say("\nOne worker holds the lock (ttl 2 s) and is killed. The next one is paused while it "
            "holds the lock;\nthe third acquires it when that lease has ended. Then the paused "
            "one resumes, and writes:\n");
        const int end = takeover(true);
        if (end == exit_ok)
            say("\nYour own job, at most one at a time among all that use this name:\n"
                "  holdfast --local run nightly -- ./report.sh\n"
                "More: holdfast demo counter, oversell, queue, takeover.");
        return end;
    }

    // --- four processes, one counter

    long counted(bool locked, long processes, long each,
                 const std::function<void(long)>& meanwhile = {}) {
        const std::string file = folder_.file(locked ? "locked" : "unlocked");
        write_number(file, 0);
        Workers workers(target_, config_);
        for (long p = 0; p < processes; ++p)
            workers.start({"count", prefix_ + "counter", file, "-", each, processes, locked,
                           seed_ + static_cast<std::uint64_t>(p)});
        while (meanwhile && workers.busy()) {
            meanwhile(read_number(file));
            std::this_thread::sleep_for(milliseconds(40));
        }
        finished_ = workers.join();
        return read_number(file);
    }

    int counter() {
        constexpr long processes = 4, each = 100;
        say("{} processes read a number from a file, add one, and write it back, {} times each.",
            processes, each);
        const long loose = counted(false, processes, each);
        say("without the lock: {} of {} ({} increments lost)", loose, processes * each,
            processes * each - loose);
        const long exact = counted(true, processes, each);
        say("with the lock:    {} of {}", exact, processes * each);
        return verdict(exact == processes * each, "Exact.", "NOT exact: the lock failed.");
    }

    // --- ten in stock, a hundred buyers

    std::size_t sold(bool locked, long stock, long processes, long each) {
        const std::string shelf = folder_.file(locked ? "shelf" : "open-shelf");
        const std::string book = shelf + "-sold";
        write_number(shelf, stock);
        Workers workers(target_, config_);
        for (long p = 0; p < processes; ++p)
            workers.start({"buy", prefix_ + "oversell", shelf, book, each, processes, locked,
                           seed_ + static_cast<std::uint64_t>(p)});
        finished_ = workers.join();
        return read_lines(book).size();
    }

    int oversell() {
        constexpr long stock = 10, processes = 20, each = 5;
        say("{} in stock, {} buyers in {} processes.", stock, processes * each, processes);
        const std::size_t loose = sold(false, stock, processes, each);
        say("without the lock: {} sold of {}", loose, stock);
        const std::size_t exact = sold(true, stock, processes, each);
        say("with the lock:    {} sold of {}", exact, stock);
        return verdict(exact == static_cast<std::size_t>(stock), "Exact.",
                       "NOT exact: the lock failed.");
    }

    // --- order of arrival

    bool wait_for_waiters(const Client& client, std::size_t n) {
        const auto end = boot_clock::now() + milliseconds(4000);
        while (true) {
            const auto seen = client.inspect(prefix_ + "queue");
            if (seen && seen->waiters.size() >= n) return true;
            if (boot_clock::now() > end) return false;
            std::this_thread::sleep_for(milliseconds(5));
        }
    }

    int queue() {
        constexpr long waiters = 8;
        int exit = 0;
        const auto client = open_client(globals_, exit);
        if (!client) return exit;
        const bool fifo = client->capabilities().has(Capability::fifo);
        auto lock = client->make_lock(prefix_ + "queue");
        if (!lock) return exit_internal;
        auto lease = (*lock)->acquire();
        if (!lease) {
            complain(lease.error(), {});
            return exit_code(lease.error());
        }
        say("We hold the lock; {} processes start to wait, one after the other.", waiters);
        const std::string order = folder_.file("order"), here = folder_.file("here");
        Workers workers(target_, config_);
        for (long w = 1; w <= waiters; ++w) {
            workers.start({"queue", prefix_ + "queue", order, here, w, 1, true, seed_});
            const auto n = static_cast<std::size_t>(w);
            if (!wait_for_lines(here, n, milliseconds(4000))) return exit_internal;
            if (fifo && !wait_for_waiters(*client, n)) return exit_internal;
        }
        lease->release();
        finished_ = workers.join();
        const auto served = read_lines(order);
        std::string text;
        std::vector<std::string> wanted;
        for (const std::string& s : served)
            text += " " + s;
        for (long w = 1; w <= waiters; ++w)
            wanted.push_back(std::to_string(w));
        say("served in this order:{}", text);
        const bool all =
            std::is_permutation(served.begin(), served.end(), wanted.begin(), wanted.end());
        if (!fifo)
            return verdict(all,
                           "Each acquired the lock once; this backend does not promise an order.",
                           "NOT all acquired the lock.");
        return verdict(all && served == wanted, "First come, first served.",
                       "NOT in order, although this backend promises it.");
    }

    // --- a crash, and a pause

    struct Holding {
        pid_t pid = 0;
        std::string file;
        std::uint64_t token = 0;
    };

    std::optional<Holding> holder(Workers& workers, Timeline& picture, long number) {
        constexpr milliseconds cap{8000};
        const auto row = static_cast<std::size_t>(number);
        picture.set(row, Timeline::State::waits);
        Holding h;
        h.file = folder_.file("holder-" + std::to_string(number));
        h.pid = workers.start(
            {"hold", prefix_ + "takeover", folder_.file("store"), h.file, number, 1, true, seed_});
        if (!wait_for_lines(h.file, 1, cap, [&] { picture.tick(); })) return {};
        h.token = std::stoull(read_lines(h.file).front());
        picture.set(row, Timeline::State::holds);
        picture.note(row, fmt::format("token {}", h.token));
        return h;
    }

    /// Lets a holder write to the store; what the store answered.
    static std::string write(const Holding& h) {
        ::kill(h.pid, SIGUSR1);
        if (!wait_for_lines(h.file, 2, milliseconds(4000))) return "no answer";
        return read_lines(h.file)[1];
    }

    /// A picture of it, or a line for each step.
    int takeover(bool drawn) {
        using State = Timeline::State;
        const auto say = [drawn]<class... A>(fmt::format_string<A...> text, A&&... args) {
            if (!drawn) Demo::say(text, std::forward<A>(args)...);
        };
        Workers workers(target_, config_);
        Timeline picture(drawn);
        const auto look_for = [&](milliseconds time) {
            for (const auto end = boot_clock::now() + time; boot_clock::now() < end;) {
                picture.tick();
                std::this_thread::sleep_for(milliseconds(20));
            }
        };
        const auto a = holder(workers, picture, 1);
        if (!a) return exit_internal;
        say("worker 1 holds the lock with token {} (ttl 2 s). We kill it: kill -9.", a->token);
        auto began = boot_clock::now();
        // Long enough to be seen.
        if (drawn) look_for(milliseconds(600));
        workers.kill(a->pid);
        picture.mark(1, "killed");
        picture.note(1, fmt::format("token {}: killed", a->token));
        picture.set(1, State::none);
        const auto b = holder(workers, picture, 2);
        if (!b) return exit_internal;
        say("worker 2 acquired it after {}, with token {}.", since(began), b->token);
        say("We pause worker 2 (SIGSTOP): it cannot renew, and cannot notice that.");
        if (drawn) look_for(milliseconds(600));
        ::kill(b->pid, SIGSTOP);
        picture.set(2, State::paused);
        began = boot_clock::now();
        const auto c = holder(workers, picture, 3);
        if (!c) return exit_internal;
        say("worker 3 acquired it after {}, with token {}.", since(began), c->token);
        if (drawn) look_for(milliseconds(400));
        const std::string fresh = write(*c);
        picture.mark(3, fresh);
        picture.note(3, fmt::format("token {}: write {}", c->token, fresh));
        picture.set(3, State::none);
        if (drawn) look_for(milliseconds(400));
        say("worker 3 writes to the store with token {}: {}", c->token, fresh);
        ::kill(b->pid, SIGCONT);
        const std::string stale = write(*b);
        picture.mark(2, stale);
        picture.note(2, fmt::format("token {}: write {}", b->token, stale));
        picture.set(2, State::none);
        picture.finish();
        say("worker 2 continues and writes with token {}: {}", b->token, stale);
        const std::string kept = fenced_read(folder_.file("store"));
        say("the store has: {}", kept);
        if (a->token == 0) {
            Demo::say("This backend has no tokens: the store cannot distinguish the writes.");
            return exit_internal;
        }
        const bool exact = a->token < b->token && b->token < c->token && fresh == "accepted" &&
                           stale == "refused" && kept.ends_with("worker-3");
        return verdict(exact,
                       drawn ? "\nThe store compares tokens: it refused the stale write."
                             : "The stale write was refused.",
                       "NOT exact.");
    }

    static std::string since(boot_clock::time_point t) {
        return spoken(std::chrono::duration_cast<milliseconds>(boot_clock::now() - t));
    }

    TempFolder folder_;
    const std::uint64_t seed_;
    const std::string target_, config_;
    Globals globals_;
    const std::string prefix_;
    bool finished_ = true;
};

}  // namespace

void add_demo(CLI::App& app, Globals& g) {
    auto* sub = app.add_subcommand("demo", "Show what locks prevent, with real processes");
    auto scene = std::make_shared<std::string>();
    auto seed = std::make_shared<std::uint64_t>(std::random_device{}());
    sub->add_option("SCENE", *scene, "counter, oversell, queue or takeover; none: a tour")
        ->check(one_of({"counter", "oversell", "queue", "takeover"}));
    sub->add_option("--seed", *seed, "Use the random pauses of an earlier run")
        ->type_name("N")
        ->transform(number(0));
    sub->footer(
        "Uses a temporary SQLite file, or the backend that the options name. Each scene takes "
        "less\n"
        "than 20 seconds. Exits with 0 only if the result under the lock was correct.");
    sub->callback(
        [scene, seed, &g] { g.action = [scene, seed, &g] { return Demo(g, *seed).run(*scene); }; });
}

}  // namespace holdfast::cli
