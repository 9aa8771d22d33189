// The backends linked into this program.
#include "holdfast/spi/registry.hpp"

#include <algorithm>

namespace holdfast {

void Registry::add(unsigned compiled_with, const char* name, spi::Descriptor* descriptor) {
    if (compiled_with != spi::version) {
        refused_.push_back(
            "backend " + std::string(name) + " was built for another Holdfast (interface " +
            std::to_string(compiled_with) + ", this is " + std::to_string(spi::version) + ")");
        return;
    }
    if (!find(descriptor->name))
        all_.push_back(std::make_unique<spi::Descriptor>(std::move(*descriptor)));
}

const spi::Descriptor* Registry::find_scheme(std::string_view scheme) const noexcept {
    for (const auto& backend : all_)
        if (std::find(backend->schemes.begin(), backend->schemes.end(), scheme) !=
            backend->schemes.end())
            return backend.get();
    return nullptr;
}

const spi::Descriptor* Registry::find(std::string_view name) const noexcept {
    for (const auto& backend : all_)
        if (backend->name == name) return backend.get();
    return nullptr;
}

Registry& Registry::linked() {
    // Never destroyed: a client in another static object may outlive every destructor of ours.
    static Registry* const registry = new Registry;
    return *registry;
}
[[maybe_unused]] const auto& linked_at_load = Registry::linked();

}  // namespace holdfast
