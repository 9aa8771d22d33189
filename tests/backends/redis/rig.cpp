#include "rig.hpp"

#include <algorithm>

#include "catch.hpp"
#include "holdfast/lab/wait_until.hpp"

namespace redis_tests {

Try::Try(std::string lock, milliseconds ttl, bool queue)
    : name(std::move(lock)), owner(spi::make_owner("test")) {
    a.name = name;
    a.owner = owner;
    a.ttl = ttl;
    a.queue = queue;
}

holdfast::error_code Try::error() const {
    if (const auto* f = std::get_if<spi::Attempt::Failed>(&a.outcome)) return f->why;
    if (const auto* d = std::get_if<spi::Attempt::NoAnswer>(&a.outcome)) return d->why;
    return {};
}

spi::Held Try::held(holdfast::Outcome how) const {
    spi::Held h;
    h.name = name;
    h.owner = owner;
    if (granted()) h.token = grant().token;
    h.ttl = a.ttl;
    h.units = a.units;
    h.lock_delay = a.lock_delay;
    h.min_hold = a.min_hold;
    h.place = a.place;
    h.sent = boot_clock::now();
    h.deadline = h.sent + 2s;
    h.outcome = how;
    return h;
}

Try& attempt(spi::Lane& lane, Try& t, milliseconds request_time) {
    t.a.sent = boot_clock::now();
    t.a.deadline = t.a.sent + request_time;
    lane.attempt(t.a);
    return t;
}

holdfast::ReleaseResult release(spi::Lane& lane, const Try& t, holdfast::Outcome how) {
    auto h = t.held(how);
    lane.release(h);
    return h.released;
}

Rig::Rig(const std::string& url, const std::string& query) {
    holdfast::Diagnostics d;
    const auto chosen =
        holdfast::parse_url(query.empty() ? url : url + "?" + query, spi::Registry::linked(), d);
    INFO(d.text());
    REQUIRE(chosen.has_value());
    backend = chosen->backend->make(chosen->settings, spi::Context{io.get_executor(), events});
}

Rig::~Rig() {
    run(backend->close());
    io.restart();
    io.poll();
}

void Rig::until(const std::function<bool()>& so, const char* what) {
    holdfast::lab::wait_until(
        [&] {
            io.restart();
            io.run_for(1ms);
            return so();
        },
        10s, what);
}

void Rig::run(spi::awaitable<void> verb) {
    bool done = false;
    std::exception_ptr thrown;
    boost::asio::co_spawn(io, std::move(verb), [&](std::exception_ptr e) {
        thrown = e;
        done = true;
    });
    until([&] { return done; }, "the verb ends");
    if (thrown) std::rethrow_exception(thrown);
}

void Rig::attempt(const std::vector<Try*>& all, milliseconds request_time) {
    std::vector<spi::Attempt*> items;
    for (Try* t : all) {
        t->a.sent = boot_clock::now();
        t->a.deadline = t->a.sent + request_time;
        t->a.detail.clear();
        items.push_back(&t->a);
    }
    run(backend->attempt(items));
    for (Try* t : all)
        t->a.repeated = true;
}

Try& Rig::attempt(Try& t, milliseconds request_time) {
    attempt(std::vector<Try*>{&t}, request_time);
    return t;
}

holdfast::error_code Rig::withdraw(Try& t, milliseconds request_time) {
    t.a.sent = boot_clock::now();
    t.a.deadline = t.a.sent + request_time;
    std::vector<spi::Attempt*> items{&t.a};
    run(backend->withdraw(items));
    return t.a.withdrawal;
}

spi::Held Rig::renew(const Try& t, milliseconds request_time) {
    spi::Held h = t.held();
    h.deadline = h.sent + request_time;
    std::vector<spi::Held*> items{&h};
    run(backend->renew(items));
    return h;
}

holdfast::ReleaseResult Rig::release(const Try& t, holdfast::Outcome how) {
    spi::Held h = t.held(how);
    std::vector<spi::Held*> items{&h};
    run(backend->release(items));
    return h.released;
}

int Rig::release(const std::vector<Try*>& all) {
    std::vector<spi::Held> held;
    for (const Try* t : all)
        held.push_back(t->held());
    std::vector<spi::Held*> items;
    for (spi::Held& h : held)
        items.push_back(&h);
    run(backend->release(items));
    return static_cast<int>(std::count_if(held.begin(), held.end(), [](const spi::Held& h) {
        return h.released == holdfast::ReleaseResult::released;
    }));
}

holdfast::result<holdfast::Inspection> Rig::inspect(const std::string& name) {
    return told(run(backend->inspect(name, boot_clock::now() + 2s)));
}
holdfast::result<std::vector<std::string>> Rig::list(const std::string& prefix, std::size_t limit) {
    return told(run(backend->list(prefix, limit, boot_clock::now() + 2s)));
}
holdfast::result<holdfast::Broken> Rig::break_lock(const std::string& name, bool now,
                                                   std::optional<holdfast::FencingToken> token) {
    const holdfast::BreakOptions options{token, now};
    const auto all = told(run(backend->break_lock(name, options, boot_clock::now() + 2s)));
    if (!all) return all.error();
    REQUIRE(all->size() == 1);
    return all->front();
}
holdfast::result<holdfast::Capabilities> Rig::probe() {
    holdfast::result<holdfast::Capabilities> promised = make_error_code(holdfast::errc::closed);
    // Not through co_spawn: g++ 12 takes what it returns for uninitialised.
    const auto examine = [this, &promised]() -> spi::awaitable<void> {
        auto asking = backend->examine(boot_clock::now() + 2s);
        const auto found = told(co_await std::move(asking));
        if (!found) {
            promised = found.error();
            co_return;
        }
        // As Client::probe reports them.
        for (const holdfast::Finding& f : found->findings)
            if (f.verdict >= holdfast::Verdict::unknown) events.warnings.push_back(to_text(f));
        promised = found->capabilities;
    };
    run(examine());
    return promised;
}

bool Rig::woken(const Try& t) {
    return std::find(events.woken.begin(), events.woken.end(), t.owner) != events.woken.end();
}

}  // namespace redis_tests
