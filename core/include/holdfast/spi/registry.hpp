// The backends that are linked in. A backend adds its Descriptor from one object file. Its CMake
// target (and its .pc file) forces that file into the link by naming the symbol
// holdfast_backend_NAME, so that neither a static archive nor --as-needed can drop it.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/spi/backend.hpp"
#include "holdfast/spi/check.hpp"

namespace holdfast {
namespace spi {

/// Changes with every declaration in this folder. A backend carries the version that it was
/// compiled with, and core refuses backends of another version.
inline constexpr unsigned version = 11;

/// What core, the command line, the suite and the documentation need to know of a backend.
struct Descriptor {
    std::string name;                  ///< "redis"; the target is Holdfast::redis
    std::vector<std::string> schemes;  ///< "redis", "rediss"
    std::string summary;               ///< one line for `holdfast backends`
    std::string example;               ///< "redis://127.0.0.1:6379"
    std::vector<OptionSpec> options;   ///< its own, beside common_options()
    enum class Hosts : std::uint8_t { none, one, many } hosts = Hosts::one;
    std::string host_option;  ///< the option of a Unix socket that replaces the host: "socket"
    std::uint16_t default_port = 0;
    bool takes_credentials = false;  ///< user and password in the URL, password_file, ...
    enum class Path : std::uint8_t { none, optional, required } path = Path::optional;
    std::string path_meaning;  ///< "the number of the database"
    /// The path names a file: a relative one in holdfast.toml starts at the folder of that file.
    bool path_is_file = false;
    /// What an administrator may run beforehand (`holdfast schema`); empty: nothing to prepare.
    std::string schema;
    /// Checks options against each other, without connecting. Adds one entry per mistake (an empty
    /// `where` is filled in). Called only when each option is valid by itself. May be empty.
    std::function<void(const Settings&, Diagnostics&)> check;
    /// Names what the servers keep apart, in one canonical text: two settings have one text if, and
    /// only if, a name is surely the same lock with both. Does not connect. Empty: core makes the
    /// text from backend, hosts, path and the options that are part of it.
    std::function<std::string(const Settings&)> identity = {};
    /// What this configuration promises, without connecting.
    std::function<Capabilities(const Settings&)> capabilities;
    std::function<std::unique_ptr<Backend>(const Settings&, Context)> make;
    /// All checks of its examine(), for documentation and tests.
    std::vector<Check> checks;
};

}  // namespace spi

/// Schemes and their backends. Thread-safe for reading after start-up.
class HOLDFAST_EXPORT Registry {
public:
    /// Ignores a second backend of the same name.
    void add(spi::Descriptor d) { add(spi::version, d.name.c_str(), &d); }
    /// Keeps a backend that was compiled with another version in refused(), and does not read its
    /// descriptor.
    void add(unsigned compiled_with, const char* name, spi::Descriptor*);
    /// One line for each linked backend that cannot be used.
    const std::vector<std::string>& refused() const noexcept { return refused_; }
    const spi::Descriptor* find_scheme(std::string_view scheme) const noexcept;
    const spi::Descriptor* find(std::string_view name) const noexcept;
    const std::vector<std::unique_ptr<spi::Descriptor>>& all() const noexcept { return all_; }
    /// The backends of this program.
    static Registry& linked();

private:
    std::vector<std::unique_ptr<spi::Descriptor>> all_;
    std::vector<std::string> refused_;
};

namespace spi {

using holdfast::Registry;

/// Registers a backend: a namespace-scope object of this type in the backend's forced object file.
struct Registration {
    explicit Registration(Descriptor d) { Registry::linked().add(std::move(d)); }
};

}  // namespace spi
}  // namespace holdfast
