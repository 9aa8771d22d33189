#include "holdfast/lab/patroni_servers.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>

#include "exchange.hpp"
#include "holdfast/lab/error.hpp"
#include "postgres_connection.hpp"
#include "postgres_files.hpp"
#include "text_file.hpp"
#include "unprivileged.hpp"

namespace holdfast::lab {
namespace {

constexpr auto cap = std::chrono::seconds(90);

std::string name_of(std::size_t i) {
    return fmt::format("member{}", i);
}

Process launch(const std::filesystem::path& directory, std::vector<std::string> argv) {
    ProcessOptions options;
    options.argv = detail::unprivileged(std::move(argv));
    options.package = "patroni";
    options.log = directory / "log";
    options.directory = directory;
    // Its HTTP client would ask a proxy of the machine's for the way to the loopback interface.
    options.environment = {{"no_proxy", "*"}, {"LC_ALL", "C.UTF-8"}, {"HOME", directory.string()}};
    return Process(std::move(options));
}

}  // namespace

PatroniServers::PatroniServers(std::size_t count,
                               const std::function<std::string(const PatroniMember&)>& config) {
    const auto programs = std::filesystem::path(detail::postgres_program("postgres")).parent_path();
    detail::give_away(directory_.path());
    for (std::size_t i = 0; i < count; ++i) {
        Member& m = members_.emplace_back();
        const auto file = m.directory / "patroni.yml";
        detail::write_text(file,
                           config({name_of(i), m.directory.path(), programs, m.port.number(),
                                   m.rest.number(), fmt::format("127.0.0.1:{}", etcd_.port())}));
        detail::give_away(m.directory.path());
        m.process.emplace(launch(m.directory.path(), {"patroni", file.string()}));
        // The first one makes the cluster, and the others copy it.
        if (i == 0 && !reached([&] { return !m.process->alive() || is(m, "primary"); }, cap))
            throw LabError("Patroni's first member does not lead\n" + logs());
    }
    wait_settled();
}

PatroniServers::~PatroniServers() {
    // An orderly end takes the servers' shared memory with them.
    try {
        for (auto& m : members_)
            if (m.process) m.process->signal(SIGTERM);
        for (auto& m : members_)
            if (m.process) (void)m.process->wait(std::chrono::seconds(10));
    } catch (const std::exception&) {
    }
}

bool PatroniServers::is(const Member& m, const char* path) const {
    const auto answer =
        detail::exchange("127.0.0.1", m.rest.number(),
                         fmt::format("GET /{} HTTP/1.0\r\n\r\n", path), std::chrono::seconds(2));
    return answer.substr(0, 5) == "HTTP/" && answer.find(" 200 ") == 8;
}

std::optional<std::size_t> PatroniServers::primary() const {
    for (std::size_t i = 0; i < members_.size(); ++i)
        if (is(members_[i], "primary")) return i;
    return {};
}

SqlRows PatroniServers::sql(const std::string& login, const std::string& text) const {
    const auto leads = primary();
    if (!leads) throw LabError("there is no leader\n" + logs());
    return detail::run_sql(
        fmt::format("host=127.0.0.1 port={} dbname=postgres connect_timeout=5 {}", port(*leads),
                    login),
        text);
}

void PatroniServers::switch_over() {
    const auto old = primary();
    std::size_t candidate = 0;
    while (candidate < members_.size() && !is(members_[candidate], "synchronous"))
        ++candidate;
    if (!old || candidate == members_.size())
        throw LabError("there is no leader with a synchronous standby\n" + logs());
    const auto& m = members_[candidate];
    switching_.emplace(
        launch(directory_.path(), {"patronictl", "-c", (m.directory / "patroni.yml").string(),
                                   "switchover", "--force", "--candidate", name_of(candidate)}));
    if (!reached([&] { return is(m, "primary"); }, cap))
        throw LabError("the candidate does not lead\n" + switching_->log_tail() + logs());
}

void PatroniServers::wait_settled() const {
    const auto settled = [this] {
        const auto all = [this](const char* path) {
            return static_cast<std::size_t>(std::count_if(
                members_.begin(), members_.end(), [&](const Member& m) { return is(m, path); }));
        };
        return all("primary") == 1 && all("replica") + 1 == members_.size() &&
               (members_.size() == 1 || all("synchronous") > 0);
    };
    if (!reached(settled, cap)) throw LabError("Patroni's members do not settle\n" + logs());
}

std::string PatroniServers::logs() const {
    std::string all;
    for (const auto& m : members_)
        if (m.process) all += m.process->log_tail() + "\n";
    return all;
}

}  // namespace holdfast::lab
