// What a backend reports, from any thread, brought to the engine's own.
#include "acquisition.hpp"
#include "engine.hpp"
#include "lease_impl.hpp"

namespace holdfast {

void Engine::add(std::string_view owner, std::shared_ptr<Acquisition> w) {
    acquisitions_.emplace(owner, std::move(w));
}

void Engine::remove(std::string_view owner) {
    acquisitions_.erase(owner);
}

void Engine::wake(std::string_view owner) {
    if (!on_engine_thread())
        return post([self = shared_from_this(), o = std::string(owner)] { self->wake(o); });
    const auto at = acquisitions_.find(owner);
    if (at == acquisitions_.end()) return;
    const auto alive = at->second;
    alive->wake();
}

void Engine::at_risk(std::string_view owner) {
    if (owner.empty())
        return post([self = shared_from_this()] {
            for (const auto& lease : self->leases_.all())
                if (lease->at_risk()) lease->renew_now();
        });
    post([self = shared_from_this(), o = std::string(owner)] {
        if (const auto lease = self->leases_.find(o)) lease->renew_now();
    });
}

void Engine::lost(std::string_view owner, error_code why) {
    post([self = shared_from_this(), o = std::string(owner), why] {
        if (const auto lease = self->leases_.find(o)) lease->reported_lost(why);
    });
}

void Engine::asked(std::string_view owner) {
    post([self = shared_from_this(), o = std::string(owner)] {
        if (const auto lease = self->leases_.find(o)) lease->asked();
    });
}

void Engine::changed(std::string_view name) {
    post([self = shared_from_this(), n = std::string(name)] { self->watched.changed(n); });
}

void Engine::moved(std::string from, std::string to) {
    Counters::add(counters.moves);
    Event e;
    e.kind = Event::Kind::moved;
    e.text = "from " + std::move(from) + " to " + std::move(to);
    events->tell(std::move(e));
    post([self = shared_from_this()] {
        for (const auto& lease : self->leases_.all())
            lease->moved();
        const auto waiting = self->acquisitions_;
        for (const auto& [owner, acquisition] : waiting)
            acquisition->moved();
        self->watched.all_changed();
    });
}

}  // namespace holdfast
