// holdfast.toml. The one file that includes toml++ (slow to compile); every value keeps its place.
#include <stdexcept>

// toml++ 3.3 checks some of its input with assertions only ("[" at the end of a line is enough),
// and tells the compiler that they hold where NDEBUG is set. Here they throw, in every build.
#ifdef NDEBUG
#define HOLDFAST_NDEBUG
#undef NDEBUG
#endif
namespace {
[[noreturn]] void toml_assertion_failed() {
    throw std::logic_error("toml++");
}
}  // namespace
#define TOML_ASSERT(expression) ((expression) ? static_cast<void>(0) : toml_assertion_failed())
#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>
#ifdef HOLDFAST_NDEBUG
#define NDEBUG
#endif

#include <algorithm>
#include <array>
#include <filesystem>

#include "config_draft.hpp"
#include "config_text.hpp"

namespace holdfast::config {
namespace {

constexpr std::size_t largest_file = 1024 * 1024;
constexpr std::size_t longest_name = 64;

std::string type_name(const toml::node& node) {
    switch (node.type()) {
        case toml::node_type::table:
            return "a table";
        case toml::node_type::array:
            return "an array";
        case toml::node_type::string:
            return "a string";
        case toml::node_type::integer:
            return "a number";
        case toml::node_type::floating_point:
            return "a number";
        case toml::node_type::boolean:
            return "true or false";
        default:
            return "a date or time";
    }
}

// toml++ may repeat text of the file after a colon or in quotes, and the file may hold a secret.
std::string without_content(std::string_view description) {
    return std::string(description.substr(0, description.find_first_of(":'\"")));
}

class Reader {
public:
    Reader(const std::string& source, const spi::Registry& registry, Diagnostics& diagnostics)
        : source_(source), registry_(registry), diagnostics_(diagnostics) {
        file_.path = source;
        const std::filesystem::path folder = std::filesystem::path(source).parent_path();
        folder_ = folder.string();
    }

    result<ConfigFile> run(std::string_view text) {
        const std::size_t before = diagnostics_.entries.size();
        read(text);
        if (diagnostics_.entries.size() != before) return make_error_code(errc::bad_config);
        return std::move(file_);
    }

private:
    std::string at(const toml::source_region& region, const std::string& key) const {
        std::string where = source_;
        where += ":" + std::to_string(region.begin.line);
        where += ":" + std::to_string(region.begin.column);
        return key.empty() ? where : where + " " + key;
    }
    void add(const toml::source_region& region, const std::string& key, std::string what,
             std::string remedy = {}) {
        diagnostics_.add(at(region, key), std::move(what), std::move(remedy));
    }

    void read(std::string_view text) {
        if (text.size() > largest_file) {
            diagnostics_.add(source_, "The file is larger than 1 MiB.", "Is it the right file?");
            return;
        }
        if (odd_bytes(text)) return;
        toml::table root;
        try {
            root = toml::parse(text, source_);
        } catch (const toml::parse_error& error) {
            std::string what = without_content(error.description());
            while (!what.empty() &&
                   (what.back() == ' ' || what.back() == ',' || what.back() == ';'))
                what.pop_back();
            add(error.source(), {}, "This is not TOML (" + what + ").",
                "Strings stand in double quotes, each table and key once.");
            return;
        } catch (const std::logic_error&) {
            diagnostics_.add(source_, "This is not TOML.",
                             "Look for a [ or a name without its other half.");
            return;
        }
        for (const auto& [key, node] : root) {
            const std::string name(key.str());
            if (name != "default" && name != "backends") unknown_top(key);
        }
        read_default(root);
        read_backends(root);
        check_default(root);
    }

    // TOML has neither; toml++ 3.3 ends the program at some of them when its assertions are on.
    bool odd_bytes(std::string_view text) {
        const bool utf8 = valid_utf8(text);
        std::size_t line = 1;
        for (const char c : text) {
            if (c == '\n') ++line;
            if (!is_control(c) || c == '\n' || c == '\r' || c == '\t') continue;
            diagnostics_.add(source_ + ":" + std::to_string(line),
                             "There is a control character in the file.", "Remove it.");
            return true;
        }
        if (!utf8) diagnostics_.add(source_, "The file is not UTF-8.", "Save it as UTF-8.");
        return !utf8;
    }

    void unknown_top(const toml::key& key) {
        const std::string name(key.str());
        const std::string near = nearest(name, {"default", "backends"});
        add(key.source(), {}, in_quotes(name) + " is not a key of this file.",
            near.empty() ? "At the top stand only default and [backends.NAME]."
                         : "Did you mean " + near + "?");
    }

    void read_default(const toml::table& root) {
        const toml::node* node = root.get("default");
        if (!node) return;
        if (const auto name = node->value_exact<std::string>())
            file_.default_name = *name;
        else
            add(node->source(), "default", "default is " + type_name(*node) + ", not a string.",
                "Write default = \"NAME\".");
    }

    void read_backends(const toml::table& root) {
        const toml::node* node = root.get("backends");
        const toml::table* backends = node ? node->as_table() : nullptr;
        if (node && !backends) {
            add(node->source(), "backends", "backends is " + type_name(*node) + ", not a table.",
                "Write [backends.NAME] and its keys below.");
            return;
        }
        if (!backends || backends->empty()) {
            diagnostics_.add(source_, "The file names no backend.",
                             "Write [backends.main] and url = \"redis://HOST:6379\" below it.");
            return;
        }
        // A table is sorted by name; people expect the order in which they wrote.
        std::vector<std::pair<const toml::key*, const toml::node*>> entries;
        for (const auto& [key, entry] : *backends)
            entries.emplace_back(&key, &entry);
        std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
            const auto &x = a.first->source().begin, &y = b.first->source().begin;
            return x.line != y.line ? x.line < y.line : x.column < y.column;
        });
        for (const auto& [key, entry] : entries)
            read_entry(*key, *entry);
    }

    void check_default(const toml::table& root) {
        if (file_.default_name.empty() ||
            std::find(names_.begin(), names_.end(), file_.default_name) != names_.end())
            return;
        const std::string near = nearest(file_.default_name, names_);
        add(root.get("default")->source(), "default",
            "There is no [backends." + file_.default_name + "].",
            !near.empty()    ? "Did you mean " + near + "?"
            : names_.empty() ? std::string()
                             : "Named here: " + join(names_, ", ") + ".");
    }

    void read_entry(const toml::key& key, const toml::node& node) {
        const std::string name(key.str()), path = "backends." + name;
        names_.push_back(name);
        const bool odd = name.empty() || name.size() > longest_name ||
                         name.find_first_not_of(
                             "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuv"
                             "wxyz0123456789_.-") != std::string::npos;
        if (odd) {
            add(key.source(), "backends", in_quotes(name) + " cannot be the name of a backend.",
                "Use at most 64 letters, digits and -_.");
            return;
        }
        const toml::table* table = node.as_table();
        if (!table) {
            add(node.source(), path, path + " is " + type_name(node) + ", not a table.",
                "Write [" + path + "] and its keys below.");
            return;
        }
        if (auto draft = start(*table, key, path)) read_keys(*table, path, std::move(*draft), key);
    }

    // What url or type says.
    std::optional<Draft> start(const toml::table& table, const toml::key& key,
                               const std::string& path) {
        const toml::node *url = table.get("url"), *type = table.get("type");
        if (!url == !type) {
            add(key.source(), path,
                url ? "Both url and type are given." : "Neither url nor type is given.",
                url ? "Keep one of the two." : "Write for example url = \"redis://HOST:6379\".");
            return std::nullopt;
        }
        const toml::node& node = url ? *url : *type;
        const std::string where = at(node.source(), path + (url ? ".url" : ".type"));
        const auto text = node.value_exact<std::string>();
        if (!text) {
            diagnostics_.add(
                where,
                std::string(url ? "url" : "type") + " is " + type_name(node) + ", not a string.",
                url ? "Write url = \"redis://HOST:6379\"." : "Write type = \"redis\".");
            return std::nullopt;
        }
        if (unlinked(*text, url != nullptr, key)) return std::nullopt;
        Draft draft;
        if (url) {
            error_code error;
            auto split = split_url(*text, where, registry_, diagnostics_, error);
            if (!split) return std::nullopt;
            draft = std::move(*split);
        } else {
            error_code error;
            const spi::Descriptor* named = registry_.find(*text);
            draft.scheme = named && !registry_.find_scheme(*text) ? named->schemes.front() : *text;
            draft.backend = backend_for(draft.scheme, where, registry_, diagnostics_, error);
            draft.where = where;
            if (!draft.backend) return std::nullopt;
        }
        draft.name = key.str();
        draft.folder = folder_;
        return draft;
    }

    bool unlinked(const std::string& text, bool url, const toml::key& key) {
        const std::string scheme = url ? text.substr(0, text.find(':')) : text;
        const std::string target = target_of(scheme);
        if (target.empty() || registry_.find_scheme(scheme)) return false;
        file_.unlinked.push_back({std::string(key.str()), scheme, target, line(key)});
        return true;
    }

    std::string line(const toml::key& key) const {
        return source_ + ":" + std::to_string(key.source().begin.line);
    }

    void read_keys(const toml::table& table, const std::string& path, Draft draft,
                   const toml::key& entry) {
        const bool url = table.contains("url");
        const std::size_t before = diagnostics_.entries.size();
        const std::vector<spi::OptionSpec> options = options_of(*draft.backend);
        for (const auto& [key, node] : table) {
            const std::string name(key.str()), full = path + "." + name;
            const bool part = name == "hosts" || name == "path" || name == "user";
            const auto spec = std::find_if(options.begin(), options.end(),
                                           [&](const auto& s) { return s.name == name; });
            if (name == "url" || name == "type") continue;
            if (part && url)
                add(key.source(), full, name + " stands beside url.",
                    "Write it into the url, or write type instead of url.");
            else if (name == "hosts")
                read_hosts(node, full, draft);
            else if (part)
                read_part(node, full, name == "path" ? draft.path : draft.user, name);
            else if (spec == options.end())
                draft.options.push_back({name, {}, at(key.source(), full), Form::toml});
            else
                read_option(node, full, *spec, draft);
        }
        auto settings = finish(draft, diagnostics_);
        if (!settings || diagnostics_.entries.size() != before) return;
        file_.backends.push_back({draft.backend, std::move(*settings), line(entry)});
    }

    void read_part(const toml::node& node, const std::string& full, std::optional<Item>& part,
                   const std::string& name) {
        if (const auto text = node.value_exact<std::string>())
            part = Item{name, *text, at(node.source(), full), Form::toml};
        else
            add(node.source(), full, name + " is " + type_name(node) + ", not a string.",
                "Write " + name + " = \"...\".");
    }

    void read_hosts(const toml::node& node, const std::string& full, Draft& draft) {
        const auto one = [&](const toml::node& host) {
            if (const auto text = host.value_exact<std::string>())
                draft.hosts.push_back({"hosts", *text, at(host.source(), full), Form::toml});
            else
                add(host.source(), full, "A host is " + type_name(host) + ", not a string.",
                    "Write hosts = [\"HOST:PORT\"].");
        };
        if (const toml::array* array = node.as_array())
            for (const toml::node& host : *array)
                one(host);
        else
            one(node);
    }

    void read_option(const toml::node& node, const std::string& full, const spi::OptionSpec& spec,
                     Draft& draft) {
        const auto take = [&](std::string value) {
            draft.options.push_back(
                {std::string(spec.name), std::move(value), at(node.source(), full), Form::toml});
        };
        const auto wrong = [&](const std::string& wanted, const std::string& remedy) {
            add(node.source(), full,
                std::string(spec.name) + " is " + type_name(node) + ", not " + wanted + ".",
                "Write " + remedy + ".");
        };
        using spi::OptionType;
        if (spec.type == OptionType::integer) {
            if (const auto value = node.value_exact<std::int64_t>())
                take(std::to_string(*value));
            else
                wrong("a whole number", assignment(Form::toml, spec, "5"));
        } else if (spec.type == OptionType::boolean) {
            if (const auto value = node.value_exact<bool>())
                take(*value ? "true" : "false");
            else
                wrong("true or false", assignment(Form::toml, spec, "true"));
        } else if (spec.type == OptionType::list) {
            read_list(node, spec, take, wrong);
        } else if (const auto text = node.value_exact<std::string>()) {
            take(*text);
        } else if (const auto value = node.value_exact<std::int64_t>();
                   value && spec.type == OptionType::duration) {
            add(node.source(), full,
                std::string(spec.name) + " = " + std::to_string(*value) + " has no unit.",
                "Write " + assignment(Form::toml, spec, std::to_string(*value) + "s") + ".");
        } else {
            wrong("a string",
                  assignment(Form::toml, spec, spec.fallback.empty() ? "..." : spec.fallback));
        }
    }

    template <class Take, class Wrong>
    void read_list(const toml::node& node, const spi::OptionSpec& spec, const Take& take,
                   const Wrong& wrong) {
        const std::string example = std::string(spec.name) + " = [\"...\"]";
        const toml::array* array = node.as_array();
        if (!array) return wrong("an array of strings", example);
        std::vector<std::string> items;
        for (const toml::node& item : *array) {
            const auto text = item.value_exact<std::string>();
            if (!text || text->find(',') != std::string::npos)
                return wrong("an array of strings without commas", example);
            items.push_back(*text);
        }
        // A single empty item must not read as an empty list.
        take(items.size() == 1 && items[0].empty() ? std::string(",") : join(items, ","));
    }

    const std::string& source_;
    const spi::Registry& registry_;
    Diagnostics& diagnostics_;
    std::string folder_;
    ConfigFile file_;
    std::vector<std::string> names_;
};

}  // namespace
}  // namespace holdfast::config

namespace holdfast {

result<ConfigFile> read_config_text(std::string_view text, const std::string& source_name,
                                    const spi::Registry& registry, Diagnostics& diagnostics) {
    return config::Reader(source_name, registry, diagnostics).run(text);
}

}  // namespace holdfast
