// Which backend a scheme belongs to, and what to link when it is missing.
#include <algorithm>
#include <array>

#include "config/parsed_config.hpp"
#include "config/text.hpp"

namespace holdfast::config {
namespace {

struct Known {
    std::string_view word, target;
    bool is_scheme;  ///< else a backend's name alone, which `type` in a file may have
};
// A program that lacks a backend must still be able to say which target has it. Written by CMake,
// from the Descriptor in each folder of a backend, whether it is built or not.
constexpr std::array known{
#include "known_schemes.inc"
};

}  // namespace

std::string target_of(std::string_view scheme) {
    for (const Known& k : known)
        if (k.is_scheme && k.word == scheme) return std::string(k.target);
    return {};
}

std::string target_of_type(std::string_view type) {
    for (const Known& k : known)
        if (k.word == type) return std::string(k.target);
    return {};
}

std::string link_remedy(std::string_view target) {
    const std::string name(target);
    std::string option = name.substr(name.rfind(':') + 1);
    for (char& c : option)
        if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    return "Build Holdfast with -DHOLDFAST_BACKEND_" + option +
           "=ON; in a program of your own also link " + name +
           " (CMake: target_link_libraries(app " + name + ")).";
}

const spi::Descriptor* backend_for(std::string_view scheme, const std::string& where,
                                   const spi::Registry& registry, Diagnostics& diagnostics,
                                   error_code& error, bool show) {
    if (const spi::Descriptor* backend = registry.find_scheme(scheme)) return backend;
    if (const std::string target = target_of(scheme); !target.empty()) {
        error = make_error_code(errc::not_supported);
        diagnostics.add(
            where, "This program was built without the backend for " + std::string(scheme) + ".",
            link_remedy(target));
        return nullptr;
    }
    error = make_error_code(errc::bad_config);
    for (const std::string& refused : registry.refused())
        diagnostics.add(where, refused + " and is not used.",
                        "Build Holdfast and its backends from one version.");
    std::vector<std::string> schemes;
    for (const auto& backend : registry.all())
        schemes.insert(schemes.end(), backend->schemes.begin(), backend->schemes.end());
    std::sort(schemes.begin(), schemes.end());
    std::vector<std::string> candidates = schemes;
    for (const Known& k : known)
        if (k.is_scheme) candidates.emplace_back(k.word);
    const std::string near = nearest(scheme, candidates);
    std::string remedy = near.empty() ? "" : "Did you mean " + near + "? ";
    remedy += schemes.empty() ? "No backend is linked into this program."
                              : "Linked in: " + join(schemes, ", ") + ".";
    diagnostics.add(where,
                    show ? "There is no backend for the scheme " + in_quotes(scheme) + "."
                         : "The URL does not begin with a known scheme.",
                    std::move(remedy));
    return nullptr;
}

}  // namespace holdfast::config
