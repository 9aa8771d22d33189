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

error_code refuse_name(const ResolvedBackend& resolved, spi::Backend& backend,
                       std::string_view name, Diagnostics* diagnostics) {
    if (const auto fault = name_fault(name); !fault.empty()) {
        if (diagnostics != nullptr)
            diagnostics->add(resolved.settings.display(), std::string(fault),
                             "Use 1 to 512 bytes of UTF-8.");
        return make_error_code(errc::bad_name);
    }
    const auto ec = backend.check_name(name);
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

result<Examination> examine_server(Engine& engine, Diagnostics* diagnostics) {
    return operator_call<Examination>(
        engine,
        [](spi::Backend& b, boot_clock::time_point deadline) { return b.examine(deadline); },
        diagnostics);
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
    Client client(std::make_shared<Impl>(std::move(*engine), options.close_grace));
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
    Engine& e = *impl_->engine;
    if (e.forked()) return make_error_code(errc::forked);
    if (e.closed()) return make_error_code(errc::closed);
    if (const auto ec = refuse_name(e.resolved, e.backend(), name, diagnostics)) return ec;
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

const Capabilities& Client::capabilities() const noexcept {
    return impl_->engine->backend().capabilities();
}

result<Capabilities> Client::probe(Diagnostics* diagnostics) const {
    Engine& e = *impl_->engine;
    const auto found = examine_server(e, diagnostics);
    if (!found) return found.error();
    for (const Finding& f : found->findings)
        if (f.verdict >= Verdict::unknown) e.events->warn(to_text(f));
    return found->capabilities;
}

result<Examination> Client::examine(Diagnostics* diagnostics) const {
    Engine& e = *impl_->engine;
    auto found = examine_server(e, diagnostics);
    if (found) spi::judge(spi::local_checks(), local_facts(e), found->findings);
    return found;
}

result<Inspection> Client::inspect(std::string_view name, Diagnostics* diagnostics) const {
    Engine& e = *impl_->engine;
    if (const auto ec = refuse_name(e.resolved, e.backend(), name, diagnostics)) return ec;
    return operator_call<Inspection>(
        e,
        [n = std::string(name)](spi::Backend& b, boot_clock::time_point deadline) {
            return inspect_with_record(b, n, deadline);
        },
        diagnostics);
}

result<std::vector<std::string>> Client::list(std::string_view prefix, std::size_t limit,
                                              Diagnostics* diagnostics) const {
    auto names = operator_call<std::vector<std::string>>(
        *impl_->engine,
        [p = std::string(prefix), limit](spi::Backend& b, boot_clock::time_point deadline) {
            return b.list(p, limit, deadline);
        },
        diagnostics);
    if (names) std::sort(names->begin(), names->end());
    return names;
}

result<std::vector<Broken>> Client::break_lock(std::string_view name, const BreakOptions& options,
                                               Diagnostics* diagnostics) const {
    Engine& e = *impl_->engine;
    if (const auto ec = refuse_name(e.resolved, e.backend(), name, diagnostics)) return ec;
    if (const auto ec = refuse_filter(options.which(), name, diagnostics)) return ec;
    BreakOptions o = options;
    if (o.note.empty()) o.note = this_user();
    return operator_call<std::vector<Broken>>(
        e,
        [&e, n = std::string(name), o = std::move(o)](spi::Backend&,
                                                      boot_clock::time_point deadline) {
            return break_and_record(e, n, o, deadline);
        },
        diagnostics);
}

result<std::vector<Holder>> Client::request_release(std::string_view name,
                                                    const HolderFilter& which,
                                                    Diagnostics* diagnostics) const {
    Engine& e = *impl_->engine;
    if (const auto ec = refuse_name(e.resolved, e.backend(), name, diagnostics)) return ec;
    if (const auto ec = refuse_filter(which, name, diagnostics)) return ec;
    return operator_call<std::vector<Holder>>(
        e,
        [n = std::string(name), w = which](spi::Backend& b, boot_clock::time_point deadline) {
            return b.request_release(n, w, deadline);
        },
        diagnostics);
}

Stats Client::stats() const {
    Engine& e = *impl_->engine;
    return e.counters.snapshot(e.backend().requests());
}

std::string Client::url() const {
    return impl_->engine->resolved.settings.display();
}

std::string_view Client::backend() const noexcept {
    return impl_->engine->resolved.backend->name;
}

void Client::close() noexcept {
    impl_->engine->close(impl_->grace);
}

}  // namespace holdfast
