// A backend's checked options by type, and the rows that all backends have.
#include "holdfast/spi/settings.hpp"

#include <algorithm>
#include <charconv>
#include <stdexcept>

#include "config/text.hpp"
#include "holdfast/spi/net/endpoint.hpp"

namespace holdfast::spi {

const std::vector<OptionSpec>& common_options() {
    static const std::vector<OptionSpec> options{
        {.name = "ttl",
         .type = OptionType::duration,
         .fallback = "10s",
         .meaning = "Time the server keeps a lease without a renewal.",
         .min = 100,
         .max = 86'400'000,
         .identity = Identity::apart},
        {.name = "request_timeout",
         .type = OptionType::duration,
         .fallback = "",
         .meaning = "Time limit of one request. By default a third of the ttl, at most 2s.",
         .min = 10,
         .max = 60'000,
         .identity = Identity::apart},
        {.name = "namespace",
         .type = OptionType::text,
         .fallback = "",
         .meaning =
             "Prefix of every name: with `app:`, the lock `x` is `app:x` to a client without a "
             "namespace. It ends in `:` or `/` and contains neither elsewhere, so two namespaces "
             "never share a name.",
         .max = 128,
         .identity = Identity::part},
        {.name = "require",
         .type = OptionType::list,
         .fallback = "",
         .meaning =
             "Capabilities that the deployment must provide. Opening the client then connects, "
             "and fails if one is missing.",
         .identity = Identity::apart},
        {.name = "backoff_min",
         .type = OptionType::duration,
         .fallback = "20ms",
         .meaning = "First pause between two attempts where the server does not notify waiters.",
         .min = 1,
         .max = 60'000,
         .identity = Identity::apart},
        {.name = "backoff_max",
         .type = OptionType::duration,
         .fallback = "1s",
         .meaning = "Longest pause between two such attempts.",
         .min = 1,
         .max = 60'000,
         .identity = Identity::apart},
    };
    return options;
}
[[maybe_unused]] const auto& common_options_at_load = common_options();

const std::vector<OptionSpec>& credential_options() {
    static const std::vector<OptionSpec> options{
        {.name = "password_file",
         .type = OptionType::path,
         .fallback = "",
         .meaning =
             "File whose first line is the password, read at each connect. Holdfast refuses a file "
             "that every user may write, and warns of one that every user may read.",
         .identity = Identity::apart},
        {.name = "password_env",
         .type = OptionType::text,
         .fallback = "",
         .meaning = "Environment variable that contains the password.",
         .identity = Identity::apart},
    };
    return options;
}
[[maybe_unused]] const auto& credential_options_at_load = credential_options();

void check_credentials(const Settings& s, bool user_needed, Diagnostics& d) {
    if (!s.user.empty() && s.password.empty())
        d.add(s.display(), "There is a user but no password.",
              "Add password_file or password_env, or leave the user out.");
    if (user_needed && s.user.empty() && !s.password.empty())
        d.add(s.display(), "There is a password but no user.",
              "Write " + s.scheme + "://user@host, or leave the password out.");
}

std::string_view Settings::text(std::string_view option) const {
    if (const auto found = values.find(option); found != values.end()) return found->second;
    for (const auto* table : {&common_options(), &credential_options()})
        for (const OptionSpec& spec : *table)
            if (spec.name == option) return spec.fallback;
    throw std::out_of_range("undeclared option: " + std::string(option));
}

milliseconds Settings::duration(std::string_view option) const {
    const std::string_view value = text(option);
    if (value.empty() && option == "request_timeout")
        return std::min(milliseconds(2000), duration("ttl") / 3);
    return value.empty() ? milliseconds(0) : parse_duration(value).value();
}

long long Settings::integer(std::string_view option) const {
    const std::string_view value = text(option);
    long long number = 0;
    std::from_chars(value.data(), value.data() + value.size(), number);
    return number;
}

bool Settings::flag(std::string_view option) const {
    return config::boolean(text(option)).value_or(false);
}

std::vector<std::string> Settings::list(std::string_view option) const {
    return config::split_list(text(option));
}

bool Settings::given(std::string_view option) const {
    return std::find(given_options.begin(), given_options.end(), option) != given_options.end();
}

Secret Settings::named_password(std::string_view prefix) const {
    const std::string option = std::string(prefix) + "password_";
    if (const auto file = text(option + "file"); !file.empty())
        return {Secret::Source::file, std::string(file)};
    if (const auto variable = text(option + "env"); !variable.empty())
        return {Secret::Source::environment, std::string(variable)};
    return {};
}

std::string Settings::display() const {
    std::string shown = scheme + ":";
    if (!hosts.empty() || path.starts_with('/')) shown += "//";
    for (std::size_t i = 0; i < hosts.size(); ++i) {
        if (i > 0) shown += ",";
        shown += text_of(hosts[i]);
    }
    return shown + config::encode_path(path);
}

}  // namespace holdfast::spi
