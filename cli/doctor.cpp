// `holdfast doctor`: what makes this deployment unsafe or slow, what that can cost, what to do.
#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "as_json.hpp"
#include "exit_code.hpp"
#include "globals.hpp"
#include "json_text.hpp"
#include "message.hpp"

namespace holdfast::cli {
namespace {

int exit_of(Verdict v) {
    switch (v) {
        case Verdict::sound:
            return exit_ok;
        case Verdict::slow:
            return exit_slow;
        case Verdict::unknown:
            return exit_unknown;
        case Verdict::unsafe:
            return exit_unsafe;
    }
    return exit_internal;
}

/// The word, padded, and in its colour where there are colours.
std::string shown_verdict(Verdict v, bool paint) {
    const std::string word = fmt::format("{:<8}", to_string(v));
    if (!paint) return word;
    const char* color = v == Verdict::sound    ? "\x1b[32m"
                        : v == Verdict::unsafe ? "\x1b[1;31m"
                                               : "\x1b[33m";
    return color + word + "\x1b[0m";
}

std::string finding_text(const Finding& f, bool paint, bool accepted) {
    std::string found = f.found.empty() ? "no details" : f.found;
    if (!f.where.empty()) found = f.where + ": " + found;
    std::string text = fmt::format("{} {}{}\n         {}\n", shown_verdict(f.verdict, paint), f.id,
                                   accepted ? " (accepted)" : "", shown(found));
    if (!f.consequence.empty()) text += fmt::format("         so: {}\n", shown(f.consequence));
    if (!f.remedy.empty()) text += fmt::format("         do: {}\n", shown(f.remedy));
    return text;
}

std::string examination_text(const Examination& e, const Client& client,
                             const std::vector<std::string>& accepted) {
    const bool paint = colored(STDOUT_FILENO);
    std::string text =
        fmt::format("{}: class {}\n", shown(client.url()), to_string(e.capabilities.safety));
    if (!e.server.empty()) text += fmt::format("served by {}\n", shown(e.server));
    for (const Verdict v : {Verdict::unsafe, Verdict::unknown, Verdict::slow, Verdict::sound}) {
        if (v == Verdict::sound && !voice().verbose) continue;
        for (const Finding& f : e.findings)
            if (f.verdict == v)
                text += finding_text(
                    f, paint, std::find(accepted.begin(), accepted.end(), f.id) != accepted.end());
    }
    const auto count = [&](Verdict v) {
        return std::count_if(e.findings.begin(), e.findings.end(),
                             [v](const Finding& f) { return f.verdict == v; });
    };
    text += fmt::format("{} checks: {} unsafe, {} unknown, {} slow, {} sound\n", e.findings.size(),
                        count(Verdict::unsafe), count(Verdict::unknown), count(Verdict::slow),
                        count(Verdict::sound));
    return text;
}

int examine(const Globals& g, const std::vector<std::string>& accepted) {
    int exit = 0;
    const auto client = open_client(g, exit);
    if (!client) return exit;
    Diagnostics mistakes;
    auto found = client->examine(&mistakes);
    if (!found) {
        complain(found.error(), mistakes);
        return exit_code(found.error());
    }
    if (!client->capabilities().has(Capability::cross_process))
        found->findings.push_back(
            {"memory.one_process",
             Verdict::unsafe,
             {},
             "its locks exist in one process only",
             "holdfast run excludes nobody: each run is a process of its own",
             "Use sqlite: for the processes of one machine, a server for several machines."});
    for (const std::string& id : accepted)
        if (std::none_of(found->findings.begin(), found->findings.end(),
                         [&id](const Finding& f) { return f.id == id; }))
            warn(fmt::format("--accept {}: there is no such check here", in_quotes(id)));
    std::cout << (g.json ? json_text(as_json(*found, *client, accepted)) + '\n'
                         : examination_text(*found, *client, accepted))
              << std::flush;
    return exit_of(verdict_without(*found, accepted));
}

}  // namespace

void add_doctor(CLI::App& app, Globals& g) {
    auto* sub = app.add_subcommand("doctor", "Check what makes a deployment unsafe or slow");
    auto url = std::make_shared<std::string>();
    auto* position = sub->add_option("URL", *url, "Backend by URL, as with --url");
    for (const char* other : {"--url", "--backend", "--local"})
        position->excludes(app.get_option(other));
    auto accepted = std::make_shared<std::vector<std::string>>();
    sub->add_option("--accept", *accepted,
                    "Do not count this check's finding in the exit code; may be repeated")
        ->option_text("CHECK")
        ->type_size(1)
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->allow_extra_args(false);
    sub->footer(
        "It acquires no lock and changes nothing at the servers, except that it creates\n"
        "Holdfast's own table where that is missing. -v also prints what is sound.\n"
        "Exit codes: 0 sound, 1 slow, 2 unsafe, 3 a check could not be made;\n"
        "64, 69, 77, 78 as for run.");
    sub->callback([url, accepted, &g] {
        if (!url->empty()) g.url = *url;
        g.action = [accepted, &g] { return examine(g, *accepted); };
    });
}

}  // namespace holdfast::cli
