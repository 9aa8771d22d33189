// URLs: scheme://[user[:password]@]host[:port][,host2[:port2]...][/path][?option=value&...].
//
// The list of hosts is split here, since general URL parsers take "a:1,b:2" for one host. Messages
// never contain the user, password or port, however malformed the URL is.
#include "config/parsed_config.hpp"
#include "config/text.hpp"

namespace holdfast::config {
namespace {

constexpr std::size_t longest_url = 8192;
constexpr std::size_t longest_scheme = 32;
using Hosts = spi::Descriptor::Hosts;

bool scheme_text(std::string_view text) {
    constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    return !text.empty() && text.size() <= longest_scheme &&
           letters.find(text[0]) != std::string_view::npos &&
           text.find_first_not_of(
               "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
               "0123456789+.-") == std::string_view::npos;
}

class Splitter {
public:
    Splitter(const std::string& source, const spi::Registry& registry, Diagnostics& diagnostics,
             error_code& error)
        : source_(source), registry_(registry), diagnostics_(diagnostics), error_(error) {}

    std::optional<ParsedConfig> run(std::string_view url) {
        const std::size_t before = diagnostics_.entries.size();
        error_ = make_error_code(errc::bad_config);
        if (!begin(url)) return std::nullopt;
        parts(url);
        if (diagnostics_.entries.size() != before) {
            // Still look at what could be read, so that all mistakes are reported at once.
            if (whole_) finish(parsed_, diagnostics_);
            return std::nullopt;
        }
        return std::move(parsed_);
    }

private:
    void add(std::string what, std::string remedy) {
        diagnostics_.add(parsed_.where.empty() ? place("URL") : parsed_.where, std::move(what),
                         std::move(remedy));
    }
    std::string place(const std::string& safe_url) const {
        return source_.empty() ? safe_url : source_;
    }

    // The scheme, and its backend; leaves what follows the ':' in `url`.
    bool begin(std::string_view& url) {
        if (url.size() > longest_url) {
            add("The URL is longer than 8192 bytes.", "Put the options into holdfast.toml.");
            return false;
        }
        for (const char c : url) {
            if (!is_control(c) && c != ' ') continue;
            add("The URL contains a space or a control character.",
                "Write a space as %20, and leave out line ends.");
            return false;
        }
        const std::size_t colon = url.find(':');
        const std::string_view scheme = url.substr(0, colon);
        const std::string_view rest =
            colon == std::string_view::npos ? std::string_view() : url.substr(colon + 1);
        const bool slashes = rest.starts_with("//");
        const bool secret = !slashes && rest.find('@') != std::string_view::npos;
        if (colon == std::string_view::npos || !scheme_text(scheme)) {
            add("The URL does not begin with a scheme.",
                "Write for example redis://HOST:6379 or sqlite:///FILE.");
            return false;
        }
        parsed_.scheme = scheme;
        parsed_.where = place(secret ? "URL" : parsed_.scheme + (slashes ? "://..." : ":..."));
        parsed_.backend =
            backend_for(scheme, parsed_.where, registry_, diagnostics_, error_, !secret);
        if (!parsed_.backend && !slashes && !secret && !rest.empty() &&
            rest.find_first_not_of("0123456789") == std::string_view::npos)
            diagnostics_.entries.back().remedy =
                "For a server, write its scheme first, as in redis://HOST:6379.";
        url = rest;
        return parsed_.backend != nullptr;
    }

    void parts(std::string_view rest) {
        const bool slashes = rest.starts_with("//");
        const bool hosted = parsed_.backend->hosts != Hosts::none;
        if (hosted && !slashes) {
            add("A host follows " + parsed_.scheme + "://.",
                "Write it as in " + parsed_.backend->example + ".");
            return;
        }
        std::string_view authority;
        if (slashes) {
            rest.remove_prefix(2);
            authority = rest.substr(0, rest.find_first_of("/?#"));
            rest.remove_prefix(authority.size());
        }
        // A '/', '?' or '#' in a password ends the authority early and leaves the '@' behind.
        if ((hosted || !authority.empty()) && rest.find('@') != std::string_view::npos) {
            add("There is an @ after the host.",
                "Write it as %40; in a user or password write / as %2F, ? as %3F and # as %23.");
            return;
        }
        if (const std::size_t hash = rest.find('#'); hash != std::string_view::npos) {
            add("A # has no meaning here.", "Write it as %23.");
            rest = rest.substr(0, hash);
        }
        const std::size_t question = rest.find('?');
        if (!take_authority(authority)) return;
        const std::string_view path = rest.substr(0, question);
        name_place(path, slashes);
        // "h1/app,h2/app" is one host and a path.
        if (parsed_.backend->hosts == Hosts::many &&
            parsed_.backend->path != spi::Descriptor::Path::none &&
            path.find(',') != std::string_view::npos)
            add("There is a comma in the path, and a host behind it would not be asked.",
                "Write the path once, behind the last host; a comma that belongs to it is %2C.");
        take_path(path);
        if (question != std::string_view::npos) take_query(rest.substr(question + 1));
        for (Item& host : parsed_.hosts)
            host.where = parsed_.where;
        if (parsed_.user) parsed_.user->where = parsed_.where;
        whole_ = true;
    }

    bool take_authority(std::string_view authority) {
        if (const std::size_t at = authority.rfind('@'); at != std::string_view::npos) {
            const std::string_view info = authority.substr(0, at);
            authority.remove_prefix(at + 1);
            if (info.find('@') != std::string_view::npos) {
                add("There is more than one @ before the host.",
                    "Write user and password once, before the first host, and an @ in them as "
                    "%40.");
                return false;
            }
            const std::size_t colon = info.find(':');
            const auto user = decode_percent(info.substr(0, colon));
            const auto password = decode_percent(
                colon == std::string_view::npos ? std::string_view() : info.substr(colon + 1));
            if (!user || !password) {
                add("A % in the user or the password is not followed by two hexadecimal digits.",
                    "Write % itself as %25.");
                return false;
            }
            if (!user->empty()) parsed_.user = Item{"user", *user, {}, Form::url};
            if (!password->empty()) parsed_.password = *password;
        }
        if (authority.empty()) return true;
        for (std::string& host : split(authority, ','))
            parsed_.hosts.push_back({"host", std::move(host), {}, Form::url});
        return true;
    }

    // The URL for messages: only what is certainly neither user nor password.
    void name_place(std::string_view path, bool slashes) {
        std::string safe = parsed_.scheme + (slashes ? "://" : ":");
        for (std::size_t i = 0; i < parsed_.hosts.size(); ++i) {
            if (!parse_endpoint(parsed_.hosts[i].value)) {
                parsed_.where = place(parsed_.scheme + "://...");
                return;
            }
            safe += (i > 0 ? "," : "") + parsed_.hosts[i].value;
        }
        safe += path;
        if (safe.size() > 120) safe = safe.substr(0, 117) + "...";
        parsed_.where = place(safe);
    }

    void take_path(std::string_view path) {
        if (path.empty()) return;
        if (const auto decoded = decode_percent(path))
            parsed_.path = Item{"path", *decoded, parsed_.where, Form::url};
        else
            add("A % in the path is not followed by two hexadecimal digits.",
                "Write % itself as %25.");
    }

    void take_query(std::string_view query) {
        if (query.empty()) return;
        for (const std::string& pair : split(query, '&')) {
            const std::size_t equals = pair.find('=');
            const auto key = decode_percent(std::string_view(pair).substr(0, equals));
            if (!key || key->empty() || has_control(*key)) {
                add("An option after the ? has no name, or a bad escape in it.",
                    "Write OPTION=VALUE, with & between two.");
                continue;
            }
            // Without a '=' the value is empty, which each type judges by itself.
            const auto value = decode_percent(equals == std::string::npos
                                                  ? std::string_view()
                                                  : std::string_view(pair).substr(equals + 1));
            if (!value)
                add("A % in the value of " + in_quotes(*key) +
                        " is not followed by two hexadecimal digits.",
                    "Write % itself as %25.");
            else
                parsed_.options.push_back({*key, *value, parsed_.where, Form::url});
        }
    }

    const std::string& source_;
    const spi::Registry& registry_;
    Diagnostics& diagnostics_;
    error_code& error_;
    ParsedConfig parsed_;
    bool whole_ = false;  // every part was found, so that the rest can be judged
};

}  // namespace

std::optional<ParsedConfig> split_url(std::string_view url, const std::string& where,
                                      const spi::Registry& registry, Diagnostics& diagnostics,
                                      error_code& error) {
    return Splitter(where, registry, diagnostics, error).run(url);
}

result<ResolvedBackend> parse_url_from(std::string_view url, const std::string& source,
                                       const spi::Registry& registry, Diagnostics& diagnostics) {
    error_code error;
    const auto parsed = split_url(url, source, registry, diagnostics, error);
    if (!parsed) return error;
    auto settings = finish(*parsed, diagnostics);
    if (!settings) return make_error_code(errc::bad_config);
    return ResolvedBackend{parsed->backend, std::move(*settings), source.empty() ? "URL" : source};
}

}  // namespace holdfast::config

namespace holdfast {

result<ResolvedBackend> parse_url(std::string_view url, const spi::Registry& registry,
                                  Diagnostics& diagnostics) {
    return config::parse_url_from(url, {}, registry, diagnostics);
}

}  // namespace holdfast
