// `holdfast backends`: what this build can talk to, and what each promises.
#include <fmt/format.h>

#include <boost/json/array.hpp>
#include <iostream>

#include "exit_code.hpp"
#include "globals.hpp"
#include "json_text.hpp"
#include "message.hpp"

namespace holdfast::cli {
namespace {

std::vector<std::string_view> promises(const Capabilities& c) {
    std::vector<std::string_view> all;
    for (auto i = 0U; i < static_cast<unsigned>(Capability::count_); ++i) {
        const auto one = static_cast<Capability>(i);
        if (c.has(one)) all.push_back(to_string(one));
    }
    return all;
}

std::string joined(const auto& words) {
    std::string text;
    for (const auto& w : words)
        text += (text.empty() ? "" : " ") + std::string(w);
    return text;
}

/// What a backend promises with nothing but its example URL.
std::optional<Capabilities> by_default(const spi::Descriptor& d) {
    Diagnostics ignored;
    const auto example = parse_url(d.example, spi::Registry::linked(), ignored);
    if (!example || !d.capabilities) return {};
    return d.capabilities(example->settings);
}

boost::json::array json_words(const auto& words) {
    boost::json::array a;
    for (const auto& w : words)
        a.push_back(boost::json::string(std::string_view(w)));
    return a;
}

void add_promises(boost::json::object& o, const Capabilities& c) {
    o["safety"] = boost::json::string(to_string(c.safety));
    o["capabilities"] = json_words(promises(c));
}

int all_backends(bool json) {
    boost::json::array list;
    for (const auto& d : spi::Registry::linked().all()) {
        const auto c = by_default(*d);
        if (json) {
            boost::json::object o{
                {"name", d->name}, {"summary", d->summary}, {"example", d->example}};
            o["schemes"] = json_words(d->schemes);
            if (c) add_promises(o, *c);
            list.push_back(std::move(o));
            continue;
        }
        std::cout << fmt::format("{:<10} {}\n           example  {}\n           schemes  {}\n",
                                 d->name, d->summary, d->example, joined(d->schemes));
        if (c)
            std::cout << fmt::format("           class    {}\n           promises {}\n",
                                     to_string(c->safety), joined(promises(*c)));
    }
    if (json) {
        boost::json::object o{{"schema", "holdfast.backends/1"}};
        o["backends"] = std::move(list);
        std::cout << json_text(o) << '\n';
    }
    std::cout << std::flush;
    return exit_ok;
}

/// The one that was named on the command line, asked over the network.
int probed(const Globals& g) {
    int exit = 0;
    const auto client = open_client(g, exit);
    if (!client) return exit;
    Diagnostics mistakes;
    const auto c = client->probe(&mistakes);
    if (!c) {
        complain(c.error(), mistakes);
        return exit_code(c.error());
    }
    if (g.json) {
        boost::json::object o{{"schema", "holdfast.backends/1"}};
        boost::json::object one{{"name", client->backend()}, {"url", clean_utf8(client->url())}};
        add_promises(one, *c);
        o["backends"] = boost::json::array{std::move(one)};
        std::cout << json_text(o) << std::endl;
        return exit_ok;
    }
    std::cout << fmt::format("{:<10} {}\n           class    {}\n           promises {}\n",
                             client->backend(), shown(client->url()), to_string(c->safety),
                             joined(promises(*c)))
              << std::flush;
    return exit_ok;
}

}  // namespace

void add_backends(CLI::App& app, Globals& g) {
    auto* sub =
        app.add_subcommand("backends", "Show the backends of this build and their promises");
    sub->footer(
        "With --url, --backend or --local it connects to that backend and shows what the\n"
        "deployment promises. Classes: A consensus, B one durable server, C timing assumptions\n"
        "among several servers, D two holders are possible after a crash or failover.");
    sub->callback([&g] {
        g.action = [&g] { return g.target_source().empty() ? all_backends(g.json) : probed(g); };
    });
}

}  // namespace holdfast::cli
