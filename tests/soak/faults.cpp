#include "faults.hpp"

namespace holdfast::soak {

namespace {

/// Applied to every proxy of the link, left for a while, taken back. Counts when it met traffic.
bool on_link(Link& link, Random& random, const Wait& wait, long longest,
             const std::function<void(lab::Proxy&)>& apply) {
    bool fired = false;
    for (auto& proxy : link)
        apply(proxy);
    wait(pick(random, 30, longest));
    for (auto& proxy : link) {
        fired = fired || proxy.fired();
        proxy.heal();
    }
    return fired;
}

WorkerFault network(std::string name, long longest,
                    std::function<void(lab::Proxy&, Random&)> apply) {
    return {std::move(name),
            [longest, apply = std::move(apply)](Worker& w, Random& random, const Wait& wait) {
                return on_link(*w.link, random, wait, longest,
                               [&](lab::Proxy& proxy) { apply(proxy, random); });
            }};
}

std::uint64_t bytes(Random& random, std::uint64_t most) {
    return std::uniform_int_distribution<std::uint64_t>(0, most)(random);
}

}  // namespace

std::vector<WorkerFault> worker_faults(const std::function<void(Worker&)>& respawn) {
    using lab::Direction;
    using lab::Ending;
    using std::chrono::milliseconds;
    return {
        network("connections cut (close)", 200,
                [](lab::Proxy& p, Random&) { p.cut_all(Ending::close); }),
        network("connections cut (reset)", 200,
                [](lab::Proxy& p, Random&) { p.cut_all(Ending::reset); }),
        network(
            "cut inside a request", 1000,
            [](lab::Proxy& p, Random& r) { p.cut_after(Direction::to_server, bytes(r, 2000)); }),
        network(
            "cut inside an answer", 1000,
            [](lab::Proxy& p, Random& r) { p.reset_after(Direction::to_client, bytes(r, 2000)); }),
        network("answer swallowed, then cut", 1500,
                [](lab::Proxy& p, Random& r) {
                    p.swallow_then_cut(Direction::to_client, 1 + bytes(r, 200), bytes(r, 500));
                }),
        network("answers swallowed", 4500,
                [](lab::Proxy& p, Random&) { p.swallow(Direction::to_client); }),
        network("requests swallowed", 4500,
                [](lab::Proxy& p, Random&) { p.swallow(Direction::to_server); }),
        network("requests held back", 4500,
                [](lab::Proxy& p, Random&) { p.stall(Direction::to_server); }),
        network("answers held back", 4500,
                [](lab::Proxy& p, Random&) { p.stall(Direction::to_client); }),
        network("black hole", 5000, [](lab::Proxy& p, Random&) { p.black_hole(); }),
        network("slow, with jitter", 4000,
                [](lab::Proxy& p, Random& r) { p.delay_both(pick(r, 1, 150), pick(r, 1, 400)); }),
        network("connections refused", 3000,
                [](lab::Proxy& p, Random&) {
                    p.refuse();
                    p.cut_all();
                }),
        {"worker stopped (SIGSTOP)",
         [](Worker& w, Random& random, const Wait& wait) {
             w.process->pause();
             wait(pick(random, 50, 5000));
             w.process->resume();
             return true;
         }},
        {"worker killed",
         [respawn](Worker& w, Random&, const Wait&) {
             w.process->kill();
             respawn(w);
             return true;
         }},
    };
}

}  // namespace holdfast::soak
