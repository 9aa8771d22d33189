// Checks one option's value against its row of the table.
#include <algorithm>
#include <charconv>

#include "config/parsed_config.hpp"
#include "config/text.hpp"

namespace holdfast::config {

using spi::OptionSpec;
using spi::OptionType;

namespace {

constexpr std::size_t longest_value = 4096;

std::string number(OptionType type, long long value) {
    return type == OptionType::duration ? spi::format_duration(milliseconds(value))
                                        : std::to_string(value);
}

bool inside(const OptionSpec& spec, long long value) {
    if (spec.min == 0 && spec.max == 0) return true;
    return value >= spec.min && (spec.max == 0 || value <= spec.max);
}

class Check {
public:
    Check(const OptionSpec& spec, const Item& item, Diagnostics& diagnostics)
        : spec_(spec), item_(item), diagnostics_(diagnostics) {}

    std::optional<std::string> run() {
        if (has_control(item_.value)) return wrong("has a control character.", "Leave it out.");
        if (item_.value.size() > longest_value)
            return wrong("is longer than 4096 bytes.", "Shorten it.");
        switch (spec_.type) {
            case OptionType::duration:
                return duration();
            case OptionType::integer:
                return integer();
            case OptionType::boolean:
                return flag();
            case OptionType::text:
                return text();
            case OptionType::choice:
                return choice();
            case OptionType::path:
                return path();
            case OptionType::list:
                return list();
        }
        return std::nullopt;
    }

private:
    std::nullopt_t wrong(const std::string& what, std::string remedy) {
        diagnostics_.add(item_.where, std::string(spec_.name) + " " + what, std::move(remedy));
        return std::nullopt;
    }
    std::string write(std::string_view value) const { return assignment(item_.form, spec_, value); }
    std::string example() const {
        if (!spec_.fallback.empty()) return write(spec_.fallback);
        const long long value =
            std::max(spec_.min, spec_.type == OptionType::duration ? 1000LL : 1LL);
        return write(number(spec_.type, spec_.max == 0 ? value : std::min(value, spec_.max)));
    }

    std::optional<std::string> duration() {
        const std::string& value = item_.value;
        if (value.empty()) return wrong("has no value.", "Write for example " + example() + ".");
        const auto parsed = spi::parse_duration(value);
        if (!parsed) {
            const bool bare =
                value.size() <= 9 && value.find_first_not_of("0123456789") == std::string::npos;
            if (bare)
                return wrong("= " + value + " has no unit.", "Write " + write(value + "s") + ".");
            return wrong(in_quotes(value) + " is not a duration.",
                         "Write a number with ms, s, m or h, for example " + example() + ".");
        }
        if (inside(spec_, parsed->count())) return value;
        return wrong("= " + spi::format_duration(*parsed) + " is out of range.",
                     "Choose from " + limits(spec_) + ".");
    }

    std::optional<std::string> integer() {
        const std::string& value = item_.value;
        long long parsed = 0;
        const auto [end, error] =
            std::from_chars(value.data(), value.data() + value.size(), parsed);
        if (error == std::errc::invalid_argument || end != value.data() + value.size())
            return wrong(in_quotes(value) + " is not a whole number.",
                         "Write for example " + example() + ".");
        if (error == std::errc() && inside(spec_, parsed)) return std::to_string(parsed);
        const std::string range = limits(spec_);
        return wrong("= " + value.substr(0, 24) + " is out of range.",
                     range.empty() ? "Write a smaller number." : "Choose from " + range + ".");
    }

    std::optional<std::string> flag() {
        if (const auto parsed = boolean(item_.value)) return *parsed ? "true" : "false";
        return wrong(in_quotes(item_.value) + " is neither true nor false.",
                     "Write " + write("true") + " or " + write("false") + ".");
    }

    std::optional<std::string> text() {
        if (spec_.name.ends_with("password_env")) return variable();
        if (!valid_utf8(item_.value)) return wrong("is not UTF-8.", "Write it in UTF-8.");
        const auto size = static_cast<long long>(item_.value.size());
        if (size != 0 && !inside(spec_, size))
            return wrong("is " + std::to_string(size) + " bytes long.",
                         "Use " + limits(spec_) + ".");
        if (spec_.name == "namespace") return prefix();
        return item_.value;
    }

    // No namespace is then the beginning of another, so no name of the one is a name of the other.
    // Nothing is added behind it: foreign clients know it as a plain prefix.
    std::optional<std::string> prefix() {
        const std::string& value = item_.value;
        if (value.empty()) return value;
        const std::size_t first = value.find_first_of(":/");
        if (first == value.size() - 1) return value;
        if (first == std::string::npos)
            return wrong(
                in_quotes(value) +
                    " does not end in : or /, so its names could collide with another namespace's.",
                "Write " + write(value + ":") + ".");
        return wrong(in_quotes(value) +
                         " has a : or / before its end, so its names could collide with another "
                         "namespace's.",
                     "Keep the last one only, or put such a prefix into the names.");
    }

    // The value is not shown: a user who takes this for the place of the password has written it
    // there.
    std::optional<std::string> variable() {
        const std::string& value = item_.value;
        const bool fits = !value.empty() &&
                          value.find_first_not_of(
                              "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") ==
                              std::string::npos &&
                          (value[0] < '0' || value[0] > '9');
        if (fits) return value;
        return wrong("is not the name of an environment variable.",
                     "Write the variable's name, for example " + write("REDIS_PASSWORD") + ".");
    }

    std::optional<std::string> choice() {
        const std::vector<std::string> choices = split(spec_.choices, '|');
        if (std::find(choices.begin(), choices.end(), item_.value) != choices.end())
            return item_.value;
        const std::string near = nearest(item_.value, choices);
        return wrong(in_quotes(item_.value) + " is not a choice.",
                     (near.empty() ? std::string() : "Did you mean " + write(near) + "? ") +
                         "Choices: " + join(choices, ", ") + ".");
    }

    std::optional<std::string> path() {
        if (item_.value.empty()) return wrong("has no value.", "Write the path of a file.");
        return item_.value;
    }

    std::optional<std::string> list() {
        const std::vector<std::string> items = split_list(item_.value);
        bool right = true;
        for (const std::string& item : items) {
            if (item.empty())
                wrong("has an empty item.", "Write the items with single commas between them.");
            else if (spec_.name == "require" && !capability_from(item))
                capability(item);
            else
                continue;
            right = false;
        }
        return right ? std::optional(join(items, ",")) : std::nullopt;
    }

    void capability(const std::string& item) {
        std::vector<std::string> all;
        for (unsigned c = 0; c < static_cast<unsigned>(Capability::count_); ++c)
            all.emplace_back(to_string(static_cast<Capability>(c)));
        const std::string near = nearest(item, all);
        wrong(
            "names " + in_quotes(item) + ", which is not a capability.",
            near.empty() ? "Capabilities: " + join(all, ", ") + "." : "Did you mean " + near + "?");
    }

    const OptionSpec& spec_;
    const Item& item_;
    Diagnostics& diagnostics_;
};

}  // namespace

std::vector<OptionSpec> options_of(const spi::Descriptor& backend) {
    std::vector<OptionSpec> all = backend.options;
    const auto add = [&all](const std::vector<OptionSpec>& table) {
        for (const OptionSpec& spec : table)
            if (std::none_of(all.begin(), all.end(),
                             [&](const OptionSpec& own) { return own.name == spec.name; }))
                all.push_back(spec);
    };
    add(spi::common_options());
    if (backend.takes_credentials) add(spi::credential_options());
    return all;
}

std::optional<std::string> check_option(const OptionSpec& spec, const Item& item,
                                        Diagnostics& diagnostics) {
    return Check(spec, item, diagnostics).run();
}

std::string socket_remedy(const spi::Descriptor& backend) {
    return "For a Unix socket write for example " + backend.schemes.front() + "://" +
           backend.example.substr(backend.example.rfind('/')) + '?' + backend.host_option +
           "=/DIRECTORY.";
}

void unknown_option(const spi::Descriptor& backend, const Item& item,
                    const std::vector<std::string>& others, Diagnostics& diagnostics) {
    if (item.key == "password" || item.key == "pass" || item.key == "passwd") {
        diagnostics.add(item.where, "A password is not given as an option.",
                        backend.takes_credentials
                            ? "Use password_file or password_env, which are read when needed."
                            : backend.name + " takes no password.");
        return;
    }
    if (item.key == "host" && !backend.host_option.empty()) {
        diagnostics.add(item.where, "The host is not given as an option.", socket_remedy(backend));
        return;
    }
    std::vector<std::string> keys = others;
    for (const OptionSpec& spec : options_of(backend))
        keys.emplace_back(spec.name);
    std::sort(keys.begin(), keys.end());
    const std::string near = nearest(item.key, keys);
    diagnostics.add(
        item.where, in_quotes(item.key) + " is not an option of " + backend.name + ".",
        near.empty() ? "Options: " + join(keys, ", ") + "." : "Did you mean " + near + "?");
}

std::string assignment(Form form, const OptionSpec& spec, std::string_view value) {
    const std::string name(spec.name), text(value);
    if (form == Form::url) return name + "=" + text;
    const bool bare = spec.type == OptionType::integer || spec.type == OptionType::boolean;
    return bare ? name + " = " + text : name + " = \"" + text + "\"";
}

std::string limits(const OptionSpec& spec) {
    if (spec.min == 0 && spec.max == 0) return {};
    if (spec.type == OptionType::text || spec.type == OptionType::path)
        return "at most " + std::to_string(spec.max) + " bytes";
    if (spec.max == 0) return number(spec.type, spec.min) + " upwards";
    return number(spec.type, spec.min) + " to " + number(spec.type, spec.max);
}

}  // namespace holdfast::config
