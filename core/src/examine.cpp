// Checks that need no server: of the configuration and of this machine.
#include <sys/resource.h>

#include "config/secret.hpp"
#include "engine.hpp"
#include "examine.hpp"
#include "holdfast/spi/check.hpp"

namespace holdfast {

std::string_view to_string(Verdict v) noexcept {
    switch (v) {
        case Verdict::sound:
            return "sound";
        case Verdict::slow:
            return "slow";
        case Verdict::unknown:
            return "unknown";
        case Verdict::unsafe:
            return "unsafe";
    }
    return "unknown";
}

std::string to_text(const Finding& f) {
    std::string text = f.where;
    for (const std::string* part : {&f.found, &f.consequence})
        if (!part->empty()) text += (text.empty() ? "" : ": ") + *part;
    return text;
}

namespace {

using spi::Facts;
using spi::Judgement;

std::optional<Judgement> judge_ttl(const Facts& f) {
    const auto ttl = f.number("ttl_ms");
    if (!ttl) return {};
    const std::string words = "the ttl is " + spi::format_duration(milliseconds(*ttl));
    return *ttl < 1000 ? spi::slow(words) : spi::sound(words);
}

std::optional<Judgement> judge_request_timeout(const Facts& f) {
    const auto ttl = f.number("ttl_ms"), timeout = f.number("request_timeout_ms");
    if (!ttl || !timeout) return {};
    const std::string words = "request_timeout is " + spi::format_duration(milliseconds(*timeout)) +
                              " with a ttl of " + spi::format_duration(milliseconds(*ttl));
    // Renewals begin after a third of the ttl: two unanswered ones have to fit into the rest.
    return *timeout > *ttl / 3 ? spi::slow(words) : spi::sound(words);
}

std::optional<Judgement> judge_exposure(const Facts& f, std::string_view fact) {
    if (!f.has(fact)) return {};
    const auto words = f.text(fact);
    return words.empty() ? spi::sound() : spi::unsafe(std::string(words));
}

std::optional<Judgement> judge_password_file(const Facts& f) {
    return judge_exposure(f, "password_file_exposed");
}

std::optional<Judgement> judge_key_file(const Facts& f) {
    return judge_exposure(f, "tls_key_file_exposed");
}

std::optional<Judgement> judge_password_in_url(const Facts& f) {
    if (f.text("password_source") == "literal")
        return spi::unsafe("the password stands in the URL or the file itself");
    if (f.text("password_source").empty()) return {};
    return spi::sound();
}

std::optional<Judgement> judge_descriptors(const Facts& f) {
    const auto limit = f.number("descriptor_limit");
    if (!limit) return {};
    const std::string words = "this process may open " + std::to_string(*limit) + " files";
    return *limit < 256 ? spi::slow(words) : spi::sound(words);
}

}  // namespace

const std::vector<spi::Check>& spi::local_checks() {
    static const std::vector<Check> all{
        {"config.ttl", "a machine that is busy for a moment loses its locks",
         "set ttl to 1 s or more; 10 s suits most uses", judge_ttl},
        {"config.request_timeout",
         "after one renewal without an answer no time is left for two more: a lost packet can cost "
         "the lease",
         "set request_timeout to a third of the ttl or less, or leave it out",
         judge_request_timeout},
        {"config.password_file", "any user of this machine may break locks", "chmod 600 that file",
         judge_password_file},
        {"config.tls_key_file", "any user of this machine may pose as this client",
         "chmod 600 that file", judge_key_file},
        {"config.password", "it can be read in the list of processes, in logs and in copies",
         "use password_file or password_env in holdfast.toml", judge_password_in_url},
        {"machine.descriptors",
         "connections fail when they are used up, and then acquisitions do, too",
         "ulimit -n 1024, or LimitNOFILE=1024 in the unit", judge_descriptors},
    };
    return all;
}
[[maybe_unused]] const auto& local_checks_at_load = spi::local_checks();

spi::Facts local_facts(const Engine& engine) {
    const spi::Settings& s = engine.resolved.settings;
    Facts facts;
    facts.set("ttl_ms", engine.timing.ttl.count());
    facts.set("request_timeout_ms", engine.timing.request(engine.timing.ttl).count());
    using Source = spi::Secret::Source;
    switch (s.password.source()) {
        case Source::none:
            break;
        case Source::literal:
            facts.set("password_source", "literal");
            break;
        case Source::file:
            facts.set("password_source", "file");
            break;
        case Source::environment:
            facts.set("password_source", "environment");
            break;
    }
    const std::string exposed = spi::exposure(s);
    if (!exposed.empty() || s.password.source() == Source::file)
        facts.set("password_file_exposed", exposed);
    const auto key = s.values.find("tls_key_file");
    if (key != s.values.end() && !key->second.empty())
        facts.set("tls_key_file_exposed", spi::key_exposure(s));
    struct rlimit files {};
    if (::getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur != RLIM_INFINITY)
        facts.set("descriptor_limit", static_cast<long long>(files.rlim_cur));
    return facts;
}

}  // namespace holdfast
