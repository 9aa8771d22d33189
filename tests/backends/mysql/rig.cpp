#include "rig.hpp"

#include <future>

#include "trial.hpp"

namespace mysql_tests {

lab::MariadbServer& server() {
    static lab::MariadbServer one = lab::MariadbServer::start();
    return one;
}

hf::Client open_here(const std::string& query) {
    return open(server().url(), query);
}

std::string url_of(const lab::MariadbServer& server, const std::string& user, std::uint16_t port) {
    return "mysql://" + user + "@127.0.0.1:" + std::to_string(port == 0 ? server.port() : port) +
           "/holdfast";
}

std::string row(const std::string& columns, const std::string& name, const lab::MariadbServer& at) {
    return at.value("SELECT " + columns + " FROM holdfast_lease WHERE slot = 0 AND name = '" +
                    name + "'");
}

bool is_free(const std::string& name, const lab::MariadbServer& at) {
    return at.value("SELECT COUNT(*) FROM holdfast_lease WHERE slot = 0 AND name = '" + name +
                    "' AND owner IS NOT NULL AND expires > UNIX_TIMESTAMP(SYSDATE(6)) * 1000000") ==
           "0";
}

void require_free(const std::string& name) {
    for (test_support::Trial trial; trial.again();)
        trial.holds(lab::reached([&] { return is_free(name); }, 2s), 2s, name + " is free");
}

hf::error_code acquire_on_engine(const hf::Client& c, const std::string& name,
                                 hf::milliseconds wait) {
    std::promise<hf::error_code> told;
    lock_of(c, name)->async_acquire({.wait = wait},
                                    [&](hf::error_code ec, hf::Lease) { told.set_value(ec); });
    return told.get_future().get();
}

Foreign::Foreign(const lab::MariadbServer& at, const std::string& statements,
                 std::chrono::seconds for_long)
    : at_(at) {
    const std::string mark = fresh("foreign");
    thread_ = std::thread([&at, statements, for_long, mark] {
        try {
            at.sql(statements + "; SELECT /* " + mark + " */ SLEEP(" +
                   std::to_string(for_long.count()) + ")");
        } catch (const lab::LabError&) {  // it was ended
        }
    });
    lab::wait_until(
        [&] {
            const auto found = at.sql(
                "SELECT id FROM information_schema.processlist WHERE state = 'User sleep' AND info "
                "LIKE '%/* " +
                mark + " */%'");
            if (!found.empty()) id_ = found[0][0];
            return !found.empty();
        },
        5s, "the other session is there");
}

void Foreign::go() {
    if (!thread_.joinable()) return;
    try {
        at_.sql("KILL " + id_);
    } catch (const lab::LabError&) {  // it has gone by itself
    }
    thread_.join();
}

}  // namespace mysql_tests
