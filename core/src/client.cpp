#include "holdfast/client.hpp"

#include <algorithm>

#include "backend_lock.hpp"
#include "engine.hpp"
#include "names.hpp"

namespace holdfast {

struct Client::Impl {
    std::shared_ptr<Handle> handle;
    Engine& engine() const noexcept { return *handle->engine; }
};

namespace {

constexpr milliseconds least_ttl{100};
constexpr milliseconds most_ttl = std::chrono::hours(24);

/// Every required capability must be there; says which one is not.
error_code missing(const Chosen& chosen, const Capabilities& has, Diagnostics& diagnostics) {
    error_code ec;
    for (const std::string& word : chosen.settings.list("require")) {
        const auto wanted = capability_from(word);
        if (wanted && has.has(*wanted)) continue;
        diagnostics.add(chosen.settings.display(),
                        "this deployment does not promise \"" + word + "\", which is required",
                        "Choose another backend or deployment (`holdfast backends` compares them), "
                        "or drop it from `require`.");
        ec = make_error_code(errc::not_supported);
    }
    return ec;
}

error_code refuse_name(const Chosen& chosen, spi::Backend& backend, std::string_view name,
                       Diagnostics* diagnostics) {
    if (const auto fault = name_fault(name); !fault.empty()) {
        if (diagnostics != nullptr)
            diagnostics->add("", std::string(fault), "Use 1 to 512 bytes of UTF-8.");
        return make_error_code(errc::bad_name);
    }
    const auto ec = backend.check_name(name);
    if (ec && diagnostics != nullptr)
        diagnostics->add(chosen.settings.display(), ec.message(), "Choose another name.");
    return ec;
}

}  // namespace

result<Client> Client::open(std::string_view what, const ClientOptions& options) {
    Diagnostics own;
    Diagnostics& diagnostics = options.diagnostics != nullptr ? *options.diagnostics : own;
    const spi::Registry& registry =
        options.registry != nullptr ? *options.registry : spi::Registry::linked();
    auto chosen = choose(what, options.config_file, registry, diagnostics);
    if (!chosen) return chosen.error();
    auto engine = Engine::start(std::move(*chosen), options, diagnostics);
    if (!engine) return engine.error();
    auto impl = std::make_shared<Impl>();
    impl->handle = std::make_shared<Handle>(std::move(*engine), options.close_grace);
    Client client(std::move(impl));
    if (const Chosen& c = client.impl_->engine().chosen; !c.settings.list("require").empty()) {
        const auto found = client.probe(&diagnostics);
        if (!found) return found.error();
        if (const auto ec = missing(c, *found, diagnostics)) return ec;
    }
    return client;
}

result<std::unique_ptr<Lock>> Client::lock(std::string_view name, const LockOptions& o) const {
    Engine& e = impl_->engine();
    if (e.forked()) return make_error_code(errc::forked);
    if (e.closed()) return make_error_code(errc::closed);
    if (const auto ec = refuse_name(e.chosen, e.backend(), name, nullptr)) return ec;
    auto info = std::make_shared<LockInfo>();
    info->name = name;
    info->ttl = o.ttl.value_or(e.timing.ttl);
    if (info->ttl < least_ttl || info->ttl > most_ttl || o.max_hold <= milliseconds::zero())
        return make_error_code(errc::bad_config);
    info->request_timeout = e.timing.request(info->ttl);
    info->max_hold = o.max_hold;
    info->renew = o.renew;
    return std::unique_ptr<Lock>(std::make_unique<BackendLock>(impl_->handle, std::move(info)));
}

const Capabilities& Client::capabilities() const noexcept {
    return impl_->engine().backend().capabilities();
}

result<Capabilities> Client::probe(Diagnostics* diagnostics) const {
    return impl_->engine().ask<Capabilities>(
        [](spi::Backend& b, boot_clock::time_point deadline, std::string& detail) {
            return b.probe(deadline, detail);
        },
        diagnostics);
}

result<Inspection> Client::inspect(std::string_view name, Diagnostics* diagnostics) const {
    Engine& e = impl_->engine();
    if (const auto ec = refuse_name(e.chosen, e.backend(), name, diagnostics)) return ec;
    return e.ask<Inspection>(
        [n = std::string(name)](spi::Backend& b, boot_clock::time_point deadline,
                                std::string& detail) { return b.inspect(n, deadline, detail); },
        diagnostics);
}

result<std::vector<std::string>> Client::list(std::string_view prefix, std::size_t limit,
                                              Diagnostics* diagnostics) const {
    auto names = impl_->engine().ask<std::vector<std::string>>(
        [p = std::string(prefix), limit](spi::Backend& b, boot_clock::time_point deadline,
                                         std::string& detail) {
            return b.list(p, limit, deadline, detail);
        },
        diagnostics);
    if (names) std::sort(names->begin(), names->end());
    return names;
}

result<Broken> Client::break_lock(std::string_view name, std::optional<FencingToken> if_token,
                                  bool now, Diagnostics* diagnostics) const {
    Engine& e = impl_->engine();
    if (const auto ec = refuse_name(e.chosen, e.backend(), name, diagnostics)) return ec;
    return e.ask<Broken>(
        [n = std::string(name), if_token, now](spi::Backend& b, boot_clock::time_point deadline,
                                               std::string& detail) {
            return b.break_lock(n, if_token, now, deadline, detail);
        },
        diagnostics);
}

Stats Client::stats() const {
    Engine& e = impl_->engine();
    return e.counters.snapshot(e.backend().requests());
}

std::string Client::url() const {
    return impl_->engine().chosen.settings.display();
}

std::string_view Client::backend() const noexcept {
    return impl_->engine().chosen.backend->name;
}

void Client::close() noexcept {
    impl_->engine().close(impl_->handle->grace);
}

}  // namespace holdfast
