#include "places.hpp"

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <filesystem>
#include <map>
#include <set>
#include <vector>

#include "config/parsed_config.hpp"
#include "holdfast/spi/identity.hpp"
#include "holdfast/spi/net/endpoint.hpp"
#include "holdfast/spi/registry.hpp"

namespace holdfast {
namespace {

constexpr std::string_view host_key = "host";
constexpr char is_part = '=', is_open = '?';
/// Ends the facts; they have no line breaks.
constexpr std::string_view before_name = "\n\n";

/// A name of a host or an address, in one spelling.
std::string canonical_host(std::string_view host) {
    error_code ec;
    const auto address = boost::asio::ip::make_address(std::string(host), ec);
    if (!ec) return address.to_string();
    std::string lower(host);
    for (char& c : lower)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return lower;
}

/// A socket, or a host whose name means this machine, which may have other names, too.
bool is_here(std::string_view host) {
    return host.starts_with('/') || spi::on_this_machine(std::string(host));
}

/// The facts of one key.
struct Fact {
    std::set<std::string_view> values;
    bool open = false;
};
using Facts = std::map<std::string_view, Fact>;

/// None: not a place of ours.
Facts facts_in(std::string_view place) {
    Facts all;
    const auto end = place.find(before_name);
    if (end == place.npos) return all;
    for (auto rest = place.substr(0, end + 1); !rest.empty();) {
        const auto line = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(line.size() + 1);
        const auto sort = line.find_first_of("=?");
        if (sort == line.npos) return {};
        Fact& fact = all[line.substr(0, sort)];
        fact.values.insert(line.substr(sort + 1));
        fact.open = fact.open || line[sort] == is_open;
    }
    return all;
}

/// Both may name one server.
bool may_be_one(std::string_view a, std::string_view b) {
    const auto colon = [](std::string_view text) { return text.rfind(':'); };
    if (a == b) return true;
    if (a.substr(colon(a)) != b.substr(colon(b))) return false;
    return is_here(a.substr(0, colon(a))) || is_here(b.substr(0, colon(b)));
}

bool overlap(std::string_view key, const Fact& a, const Fact& b) {
    for (const auto x : a.values)
        for (const auto y : b.values)
            if (key == host_key ? may_be_one(x, y) : x == y) return true;
    return false;
}

}  // namespace

namespace spi {

IdentityText& IdentityText::line(std::string_view key, char sort, std::string_view value) {
    text_ += key;
    text_ += sort;
    for (const char c : value) {
        if (c == '\n' || c == '%') {
            text_ += c == '%' ? "%25" : "%0A";
        } else {
            text_ += c;
        }
    }
    text_ += '\n';
    return *this;
}

IdentityText& IdentityText::hosts(std::vector<Endpoint> all) {
    std::vector<std::string> lines;
    for (Endpoint& e : all)
        lines.push_back(canonical_host(e.host) + ':' + std::to_string(e.port));
    std::sort(lines.begin(), lines.end());
    for (const std::string& l : lines)
        line(host_key, is_part, l);
    return *this;
}

IdentityText& IdentityText::socket(std::string_view path, std::uint16_t port) {
    return line(host_key, is_part, canonical_path(path) + ':' + std::to_string(port));
}

IdentityText& IdentityText::part(std::string_view key, std::string_view value) {
    return line(key, is_part, value);
}

IdentityText& IdentityText::open(std::string_view key, std::string_view value) {
    return line(key, is_open, value);
}

std::string canonical_path(std::string_view path) {
    std::error_code ec;
    const auto absolute = std::filesystem::absolute(std::filesystem::path(path), ec);
    if (ec) return {};
    // First by the text, as backends do before they open a file.
    auto found = std::filesystem::weakly_canonical(absolute.lexically_normal(), ec);
    return ec ? absolute.lexically_normal().string() : found.string();
}

}  // namespace spi

std::string place_before_name(const ResolvedBackend& c) {
    const spi::Descriptor& backend = *c.backend;
    const spi::Settings& s = c.settings;
    spi::IdentityText head;
    head.part("backend", backend.name);
    spi::IdentityText facts;
    if (!backend.identity) {
        facts.hosts(s.hosts).part("path", s.path);
        for (const spi::OptionSpec& o : config::options_of(backend)) {
            // The namespace is the beginning of the name for a client that has none.
            if (o.name == "namespace" || o.identity == spi::Identity::apart) continue;
            if (o.identity == spi::Identity::part)
                facts.part(o.name, s.text(o.name));
            else
                facts.open(o.name, s.text(o.name));
        }
    }
    return head.text() + (backend.identity ? backend.identity(s) : facts.text()) + '\n' +
           std::string(s.text("namespace"));
}

std::string_view name_in(std::string_view place) noexcept {
    const auto end = place.find(before_name);
    return end == place.npos ? place : place.substr(end + before_name.size());
}

std::string left_open(std::string_view a, std::string_view b) {
    Facts of_a = facts_in(a), of_b = facts_in(b);
    if (of_a.empty() || of_b.empty()) return {};
    std::string open;
    std::set<std::string_view> keys;
    for (const Facts* all : {&of_a, &of_b})
        for (const auto& [key, fact] : *all)
            keys.insert(key);
    for (const auto key : keys) {
        const Fact &x = of_a[key], &y = of_b[key];
        if (x.values == y.values && x.open == y.open) continue;
        // What one of them leaves out, the server decides.
        const bool decided = !x.open && !y.open && !x.values.empty() && !y.values.empty();
        if (decided && !overlap(key, x, y)) return {};
        open += (open.empty() ? "" : ", ") + std::string(key);
    }
    return open;
}

}  // namespace holdfast
