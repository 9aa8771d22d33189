#include "holdfast/client.hpp"

#include <algorithm>

#include "backend_lock.hpp"
#include "break_record.hpp"
#include "config/secret.hpp"
#include "engine.hpp"
#include "examine.hpp"
#include "names.hpp"
#include "operator_call.hpp"

namespace holdfast {

namespace {

constexpr milliseconds least_ttl{100};
constexpr milliseconds most_ttl = std::chrono::hours(24);

/// Every required capability must be there; says which one is not.
error_code missing(const ResolvedBackend& resolved, const Capabilities& has,
                   Diagnostics& diagnostics) {
    error_code ec;
    for (const std::string& word : resolved.settings.list("require")) {
        const auto wanted = capability_from(word);
        if (wanted && has.has(*wanted)) continue;
        diagnostics.add(resolved.settings.display(),
                        "this deployment does not provide \"" + word + "\", which `require` names",
                        "Choose another backend or deployment (`holdfast backends` compares them), "
                        "or remove it from `require`.");
        ec = make_error_code(errc::not_supported);
    }
    return ec;
}

/// `engine`: null without a client, which the call itself tells.
error_code refuse_name(Engine* engine, std::string_view name, Diagnostics* diagnostics) {
    if (engine == nullptr) return {};
    const ResolvedBackend& resolved = engine->resolved;
    if (const auto fault = name_fault(name); !fault.empty()) {
        if (diagnostics != nullptr)
            diagnostics->add(resolved.settings.display(), std::string(fault),
                             "Use 1 to 512 bytes of UTF-8.");
        return make_error_code(errc::bad_name);
    }
    const auto ec = engine->backend().check_name(name);
    if (ec && diagnostics != nullptr)
        diagnostics->add(resolved.settings.display(), ec.message(), "Choose another name.");
    return ec;
}

/// An owner that is given and empty is most likely a variable that was not set.
error_code refuse_filter(const HolderFilter& which, std::string_view name,
                         Diagnostics* diagnostics) {
    if (!which.owner || !which.owner->empty()) return {};
    if (diagnostics != nullptr)
        diagnostics->add(std::string(name), "the owner id is empty",
                         "Give a holder's owner id, or leave it out to mean all holders.");
    return make_error_code(errc::bad_config);
}

/// What the backend does not have.
error_code unsupported(const ResolvedBackend& resolved, const LockOptions& o,
                       const Capabilities& has, Diagnostics* diagnostics) {
    const std::pair<bool, Capability> needed[] = {
        {o.kind == Kind::shared_mutex, Capability::shared},
        {o.kind == Kind::semaphore, Capability::semaphore},
        {o.lock_delay > milliseconds::zero(), Capability::lock_delay},
        {o.min_hold > milliseconds::zero(), Capability::min_hold}};
    for (const auto& [wanted, capability] : needed) {
        if (!wanted || has.has(capability)) continue;
        const auto ec = make_error_code(errc::not_supported);
        if (diagnostics != nullptr) explain(*diagnostics, resolved, ec, to_string(capability));
        return ec;
    }
    return {};
}

error_code out_of_range(const LockInfo& lock, const LockOptions& o, Diagnostics* diagnostics) {
    constexpr std::uint32_t most_permits = 65'535;
    std::string what, remedy;
    if (lock.ttl < least_ttl || lock.ttl > most_ttl) {
        what = "a ttl of " + std::to_string(lock.ttl.count()) + " ms is out of range";
        remedy = "Use 100 ms to 24 h.";
    } else if (o.max_hold <= milliseconds::zero()) {
        what = "max_hold is not positive";
        remedy = "Use a duration above zero; leave it out for no limit.";
    } else if (o.lock_delay < milliseconds::zero() || o.lock_delay > most_ttl ||
               o.min_hold < milliseconds::zero() || o.min_hold > most_ttl) {
        what = "lock_delay or min_hold is out of range";
        remedy = "Use 0 to 24 h.";
    } else if (o.limit == 0 || o.limit > most_permits ||
               (o.kind != Kind::semaphore && o.limit != 1)) {
        what = o.kind == Kind::semaphore
                   ? "a semaphore of " + std::to_string(o.limit) + " permits is out of range"
                   : "only a semaphore has a limit";
        remedy = o.kind == Kind::semaphore ? "Use 1 to 65535." : "Leave limit out.";
    } else {
        return {};
    }
    if (diagnostics != nullptr) diagnostics->add("", std::move(what), std::move(remedy));
    return make_error_code(errc::bad_config);
}

// --- what operators ask of the backend

template <class T>
using Verb = result<OperatorVerb<T>>;

Verb<Examination> examination_of_server() {
    return OperatorVerb<Examination>(
        [](Engine& e, boot_clock::time_point deadline) { return e.backend().examine(deadline); });
}

spi::awaitable<spi::Answer<Examination>> examine_all(Engine& e, boot_clock::time_point deadline) {
    auto asking = e.backend().examine(deadline);
    auto found = co_await std::move(asking);
    if (found) {
        spi::judge(spi::local_checks(), local_facts(e), found->findings);
        found->server = e.backend().serving();
    }
    co_return found;
}

Verb<Inspection> inspection(Engine* e, std::string_view name, Diagnostics* diagnostics) {
    if (const auto ec = refuse_name(e, name, diagnostics)) return ec;
    return OperatorVerb<Inspection>(
        [n = std::string(name)](Engine& engine, boot_clock::time_point deadline) {
            return inspect_with_record(engine.backend(), n, deadline);
        });
}

using Names = std::vector<std::string>;

spi::awaitable<spi::Answer<Names>> sorted_names(Engine& e, std::string prefix, std::size_t limit,
                                                boot_clock::time_point deadline) {
    auto asking = e.backend().list(prefix, limit, deadline);
    auto names = co_await std::move(asking);
    if (names) std::sort(names->begin(), names->end());
    co_return names;
}

Verb<Names> listing(std::string_view prefix, std::size_t limit) {
    return OperatorVerb<Names>(
        [p = std::string(prefix), limit](Engine& e, boot_clock::time_point deadline) {
            return sorted_names(e, p, limit, deadline);
        });
}

Verb<std::vector<Broken>> breaking(Engine* e, std::string_view name, const BreakOptions& options,
                                   Diagnostics* diagnostics) {
    if (const auto ec = refuse_name(e, name, diagnostics)) return ec;
    if (const auto ec = refuse_filter(options.which(), name, diagnostics)) return ec;
    BreakOptions o = options;
    if (o.note.empty()) o.note = this_user();
    return OperatorVerb<std::vector<Broken>>(
        [n = std::string(name), o = std::move(o)](Engine& engine, boot_clock::time_point deadline) {
            return break_and_record(engine, n, o, deadline);
        });
}

Verb<std::vector<Holder>> request(Engine* e, std::string_view name, const HolderFilter& which,
                                  Diagnostics* diagnostics) {
    if (const auto ec = refuse_name(e, name, diagnostics)) return ec;
    if (const auto ec = refuse_filter(which, name, diagnostics)) return ec;
    return OperatorVerb<std::vector<Holder>>(
        [n = std::string(name), w = which](Engine& engine, boot_clock::time_point deadline) {
            return engine.backend().request_release(n, w, deadline);
        });
}

}  // namespace

result<Client> Client::open(std::string_view what, const ClientOptions& options) {
    Diagnostics own;
    Diagnostics& diagnostics = options.diagnostics != nullptr ? *options.diagnostics : own;
    const spi::Registry& registry =
        options.registry != nullptr ? *options.registry : spi::Registry::linked();
    auto resolved = resolve(what, options.config_file, registry, diagnostics);
    if (!resolved) return resolved.error();
    auto engine = Engine::start(std::move(*resolved), options, diagnostics);
    if (!engine) return engine.error();
    const spi::Settings& settings = (*engine)->resolved.settings;
    for (auto& text : {spi::exposure(settings), spi::key_exposure(settings)})
        if (!text.empty()) (*engine)->events->warn(text);
    // `forever` cannot be added to the present.
    const auto grace =
        std::clamp<milliseconds>(options.close_grace, milliseconds(0), std::chrono::hours(24));
    Client client(std::make_shared<Impl>(std::move(*engine), grace));
    if (const ResolvedBackend& c = client.impl_->engine->resolved;
        !c.settings.list("require").empty()) {
        const auto found = client.probe(&diagnostics);
        if (!found) return found.error();
        if (const auto ec = missing(c, *found, diagnostics)) return ec;
    }
    return client;
}

result<std::unique_ptr<Lock>> Client::make_lock(std::string_view name, const LockOptions& o,
                                                Diagnostics* diagnostics) const {
    if (!impl_) return make_error_code(errc::closed);
    Engine& e = *impl_->engine;
    if (e.forked()) return make_error_code(errc::forked);
    if (e.closed()) return make_error_code(errc::closed);
    if (const auto ec = refuse_name(&e, name, diagnostics)) return ec;
    auto info = std::make_shared<LockInfo>();
    info->name = name;
    info->kind = o.kind;
    info->limit = o.limit;
    info->lock_delay = o.lock_delay;
    info->min_hold = o.min_hold;
    info->set_ttl(o.ttl.value_or(e.timing.ttl));
    if (const auto ec = out_of_range(*info, o, diagnostics)) return ec;
    if (const auto ec = unsupported(e.resolved, o, e.backend().capabilities(), diagnostics))
        return ec;
    info->request_timeout = e.timing.request(info->ttl);
    info->max_hold = o.max_hold;
    info->renew = o.renew;
    return std::unique_ptr<Lock>(std::make_unique<BackendLock>(impl_, std::move(info)));
}

Engine* Client::engine() const noexcept {
    return impl_ ? impl_->engine.get() : nullptr;
}

namespace {
constexpr Capabilities no_capabilities;
}

const Capabilities& Client::capabilities() const noexcept {
    return impl_ ? impl_->engine->backend().capabilities() : no_capabilities;
}

result<Capabilities> Client::probe(Diagnostics* diagnostics) const {
    const auto found = operator_call(engine(), examination_of_server(), diagnostics);
    if (!found) return found.error();
    for (const Finding& f : found->findings)
        if (f.verdict >= Verdict::unknown) engine()->events->warn(to_text(f));
    return found->capabilities;
}

result<Examination> Client::examine(Diagnostics* diagnostics) const {
    return operator_call(engine(), Verb<Examination>(examine_all), diagnostics);
}
void Client::start_examine(Diagnostics* diagnostics, Handler<Examination> h) const {
    start_operator_call(engine(), Verb<Examination>(examine_all), diagnostics, std::move(h));
}

result<Inspection> Client::inspect(std::string_view name, Diagnostics* diagnostics) const {
    return operator_call(engine(), inspection(engine(), name, diagnostics), diagnostics);
}
void Client::start_inspect(const std::string& name, Diagnostics* diagnostics,
                           Handler<Inspection> h) const {
    start_operator_call(engine(), inspection(engine(), name, diagnostics), diagnostics,
                        std::move(h));
}

result<Names> Client::list(std::string_view prefix, std::size_t limit,
                           Diagnostics* diagnostics) const {
    return operator_call(engine(), listing(prefix, limit), diagnostics);
}
void Client::start_list(const std::string& prefix, std::size_t limit, Diagnostics* diagnostics,
                        Handler<Names> h) const {
    start_operator_call(engine(), listing(prefix, limit), diagnostics, std::move(h));
}

result<std::vector<Broken>> Client::break_lock(std::string_view name, const BreakOptions& options,
                                               Diagnostics* diagnostics) const {
    return operator_call(engine(), breaking(engine(), name, options, diagnostics), diagnostics);
}
void Client::start_break(const std::string& name, const BreakOptions& options,
                         Diagnostics* diagnostics, Handler<std::vector<Broken>> h) const {
    start_operator_call(engine(), breaking(engine(), name, options, diagnostics), diagnostics,
                        std::move(h));
}

result<std::vector<Holder>> Client::request_release(std::string_view name,
                                                    const HolderFilter& which,
                                                    Diagnostics* diagnostics) const {
    return operator_call(engine(), request(engine(), name, which, diagnostics), diagnostics);
}
void Client::start_request(const std::string& name, const HolderFilter& which,
                           Diagnostics* diagnostics, Handler<std::vector<Holder>> h) const {
    start_operator_call(engine(), request(engine(), name, which, diagnostics), diagnostics,
                        std::move(h));
}

Stats Client::stats() const {
    if (!impl_) return {};
    Engine& e = *impl_->engine;
    return e.counters.snapshot(e.backend().requests());
}

std::string Client::url() const {
    return impl_ ? impl_->engine->resolved.settings.display() : std::string();
}

std::string_view Client::backend() const noexcept {
    return impl_ ? std::string_view(impl_->engine->resolved.backend->name) : std::string_view();
}

void Client::close() noexcept {
    if (impl_) impl_->engine->close(impl_->grace);
}

}  // namespace holdfast
