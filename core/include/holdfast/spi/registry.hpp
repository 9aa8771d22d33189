// Which backends are linked in. A backend adds its Descriptor from one object file that its CMake
// target (and its .pc file) forces into the link by naming the symbol holdfast_backend_NAME, so
// that neither a static archive nor --as-needed can drop it.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/spi/backend.hpp"
#include "holdfast/spi/check.hpp"

namespace holdfast::spi {

/// Changes with every change of what this folder declares. A backend carries the version that it
/// was compiled with, and core uses no backend of another one.
inline constexpr unsigned version = 3;

/// All that core, the command line, the suite and the documentation need to know of a backend.
struct Descriptor {
    std::string name;                  ///< "redis"; the target is Holdfast::redis
    std::vector<std::string> schemes;  ///< "redis", "rediss"
    std::string summary;               ///< one line for `holdfast backends`
    std::string example;               ///< "redis://127.0.0.1:6379"
    std::vector<OptionSpec> options;   ///< its own, beside common_options()
    enum class Hosts : std::uint8_t { none, one, many } hosts = Hosts::one;
    std::uint16_t default_port = 0;
    bool takes_credentials = false;  ///< user and password in the URL, password_file, ...
    enum class Path : std::uint8_t { none, optional, required } path = Path::optional;
    std::string path_meaning;  ///< "the number of the database"
    /// The path names a file: a relative one in holdfast.toml counts from the folder of that file.
    bool path_is_file = false;
    /// What an administrator may run beforehand, for `holdfast schema`; empty: nothing to prepare.
    std::string schema;
    /// Cross-option checks, without connecting: adds one entry per mistake (`where` left empty is
    /// filled in). Called only when each option by itself is right. May be empty.
    std::function<void(const Settings&, Diagnostics&)> check;
    /// What such a configuration promises, without connecting.
    std::function<Capabilities(const Settings&)> capabilities;
    std::function<std::unique_ptr<Backend>(const Settings&, Context)> make;
    /// All that its examine() judges by, for documentation and tests.
    std::vector<Check> checks;
};

/// Schemes and their backends. Thread-safe for reading after start-up.
class HOLDFAST_EXPORT Registry {
public:
    /// A second backend of the same name is ignored.
    void add(Descriptor d) { add(version, d.name.c_str(), &d); }
    /// A backend compiled with another version is kept in refused(), and nothing of its descriptor
    /// is looked at.
    void add(unsigned compiled_with, const char* name, Descriptor*);
    /// One line for each backend that is linked in and cannot be used.
    const std::vector<std::string>& refused() const noexcept { return refused_; }
    const Descriptor* find_scheme(std::string_view scheme) const noexcept;
    const Descriptor* find(std::string_view name) const noexcept;
    const std::vector<std::unique_ptr<Descriptor>>& all() const noexcept { return all_; }
    /// Everything linked into this program.
    static Registry& linked();

private:
    std::vector<std::unique_ptr<Descriptor>> all_;
    std::vector<std::string> refused_;
};

/// A namespace-scope object of this type in the backend's forced object file does the registration.
struct Registration {
    explicit Registration(Descriptor d) { Registry::linked().add(std::move(d)); }
};

}  // namespace holdfast::spi
