#include "server_facts.hpp"

#include "errors.hpp"

namespace holdfast::resp {
namespace {

/// The value behind a name in a reply that lists names and values by turns.
std::string_view value_of(const Reply& list, std::string_view name) noexcept {
    const auto items = list.items();
    for (std::size_t i = 0; i + 1 < items.size(); i += 2)
        if (items[i].is_text() && items[i].text == name && items[i + 1].is_text())
            return items[i + 1].text;
    return {};
}

/// Keeps nothing, so that one serves all connections.
class Usable final : public Greeting {
public:
    explicit Usable(bool in_cluster) : in_cluster_(in_cluster) {}
    unsigned ask(const Target& target, std::string& out) override {
        Command c;
        c.add("HELLO");
        // By the same command, so that a name costs no request.
        if (!target.client_name.empty()) c.add("2").add("SETNAME").add(target.client_name);
        c.encode(out);
        return 1;
    }
    spi::Failure answered(unsigned, const Reply& r) override {
        if (!r.is(Reply::Type::array)) return {};
        const bool cluster = value_of(r, "mode") == "cluster";
        if (cluster && !in_cluster_)
            return {make(Error::cluster),
                    "this server is part of a Redis Cluster; write redis+cluster://HOST,HOST,HOST"};
        if (value_of(r, "mode") == "sentinel")
            return {make(Error::refused_command),
                    "this is a Sentinel; write redis+sentinel://HOST,HOST,HOST/NAME"};
        const auto version = value_of(r, "version");
        if (in_cluster_ && value_of(r, "mode") == "standalone")
            return {make(Error::no_cluster),
                    "this server is not part of a Redis Cluster (cluster-enabled no); write "
                    "redis://HOST"};
        // One of a cluster leads to its primary by itself.
        const auto role = value_of(r, "role");
        if (role == "replica" && !in_cluster_)
            return {make(Error::read_only),
                    "READONLY: this server is a replica; give the URL of its primary"};
        // KeyDB's active-replica, for one: another server takes writes as well.
        if (!role.empty() && role != "master" && !in_cluster_)
            return {make(Error::refused_command), "this server's role is " +
                                                      std::string(shown(role)) +
                                                      ", and a lock needs one primary"};
        if (value_of(r, "server") == "redis" && !version.empty() && too_old(version))
            return {make(Error::too_old), "the server is Redis " + std::string(version)};
        return {};
    }

private:
    const bool in_cluster_;
};

}  // namespace

std::string_view fact(std::string_view info, std::string_view key) noexcept {
    for (std::size_t at = 0; (at = info.find(key, at)) != info.npos; at += key.size()) {
        const bool line = at == 0 || info[at - 1] == '\n';
        if (!line || !info.substr(at + key.size()).starts_with(':')) continue;
        const auto rest = info.substr(at + key.size() + 1);
        return rest.substr(0, rest.find_first_of("\r\n"));
    }
    return {};
}

bool too_old(std::string_view version) noexcept {
    const auto dot = version.find('.');
    const auto major = number(version);
    const auto minor = dot == version.npos ? 0 : number(version.substr(dot + 1));
    return major < 6 || (major == 6 && minor < 2);
}

Greeting& usable() noexcept {
    static Usable one(false);
    return one;
}
[[maybe_unused]] const auto& usable_at_load = usable();

Greeting& usable_in_cluster() noexcept {
    static Usable one(true);
    return one;
}
[[maybe_unused]] const auto& usable_in_cluster_at_load = usable_in_cluster();

}  // namespace holdfast::resp
