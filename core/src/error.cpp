// Core's error category, and the text of diagnostics.
#include "holdfast/error.hpp"

#include "config/text.hpp"
#include "explain.hpp"
#include "holdfast/spi/net/category.hpp"

namespace holdfast {
namespace {

constexpr int max_hold = 100, expired = 101, gone = 102;  // their condition is errc::lost
constexpr int server_answered = 103;

const char* words(errc e) noexcept {
    switch (e) {
        case errc::contended:
            return "another client holds the lock";
        case errc::timed_out:
            return "another client still held the lock when the wait ended";
        case errc::cancelled:
            return "cancelled";
        case errc::unavailable:
            return "the lock server cannot be reached";
        case errc::no_quorum:
            return "fewer than a majority of nodes granted";
        case errc::in_doubt:
            return "the server did not answer; Holdfast is undoing the request";
        case errc::lost:
            return "the lease is lost";
        case errc::revoked:
            return "an operator broke the lock";
        case errc::not_held:
            return "not held";
        case errc::denied:
            return "authentication or permission denied";
        case errc::not_supported:
            return "not supported by this backend";
        case errc::kind_mismatch:
            return "at the server the name holds something else: another kind of lock, or none";
        case errc::bad_name:
            return "not a valid lock name";
        case errc::bad_config:
            return "wrong configuration";
        case errc::would_deadlock:
            return "the call would deadlock";
        case errc::closed:
            return "the client is closed";
        case errc::forked:
            return "this handle is unusable after fork()";
    }
    return "unknown error";
}

class Category final : public boost::system::error_category {
public:
    const char* name() const noexcept override { return "holdfast"; }
    std::string message(int value) const override {
        if (value == max_hold) return "held for longer than max_hold";
        if (value == expired) return "its validity ended without a renewal";
        if (value == gone) return "the server no longer has the lease";
        return words(static_cast<errc>(value));
    }
    boost::system::error_condition default_error_condition(int value) const noexcept override {
        const bool loss = value == max_hold || value == expired || value == gone;
        return {loss ? static_cast<int>(errc::lost) : value, *this};
    }
};

std::string_view remedy(const error_code& ec) noexcept {
    if (ec == spi::net::answered()) return {};
    if (ec == errc::no_quorum)
        return "Check that a majority of the nodes run and that this host may connect to them, "
               "then try again.";
    if (ec == errc::unavailable || ec == errc::in_doubt)
        return "Check that the server runs and that this host may connect to it, then try again.";
    if (ec == errc::denied)
        return "Check the user, the password (password_file, password_env) and the user's "
               "permissions.";
    if (ec == errc::kind_mismatch) return "Choose another name or another namespace.";
    if (ec == errc::contended || ec == errc::timed_out) return "Wait longer, or try again later.";
    if (ec == errc::not_supported) return "`holdfast backends` shows what each backend supports.";
    return {};
}

}  // namespace

const boost::system::error_category& category() noexcept {
    static constinit const Category instance;
    return instance;
}

error_code make_error_code(errc e) noexcept {
    return {static_cast<int>(e), category()};
}

bool is_permanent(const error_code& ec) noexcept {
    return ec == errc::denied || ec == errc::not_supported || ec == errc::kind_mismatch ||
           ec == errc::bad_config;
}

bool is_silence(const error_code& ec) noexcept {
    const bool away = ec == errc::unavailable || ec == errc::no_quorum || ec == errc::in_doubt;
    return away && ec != spi::net::answered();
}

boost::system::error_condition spi::net::answered() noexcept {
    return {server_answered, category()};
}

error_code expired_error() noexcept {
    return {expired, category()};
}

error_code gone_error() noexcept {
    return {gone, category()};
}

error_code max_hold_error() noexcept {
    return {max_hold, category()};
}

boost::system::error_condition make_error_condition(errc e) noexcept {
    return {static_cast<int>(e), category()};
}

void Diagnostics::add(std::string where, std::string what, std::string remedy) {
    entries.push_back({config::printable(std::move(where)), config::printable(std::move(what)),
                       config::printable(std::move(remedy))});
}

std::string Diagnostics::text() const {
    std::string out;
    for (const Entry& e : entries) {
        if (!out.empty()) out += '\n';
        if (!e.where.empty()) out += e.where + ": ";
        out += e.what;
        if (!e.remedy.empty()) out += "\n  " + e.remedy;
    }
    return out;
}

void explain(Diagnostics& out, const ResolvedBackend& resolved, const error_code& ec,
             std::string_view detail) {
    const boost::system::error_condition condition = ec.default_error_condition();
    // What the server says is more than that it does not serve.
    const bool general = condition.category() == category() && ec != spi::net::answered();
    std::string what = general ? category().message(condition.value()) : ec.message();
    const std::string said(detail.empty() && ec.category() != category() ? ec.message() : detail);
    if (!said.empty() && said != what) what += " (" + said + ")";
    out.add(resolved.settings.display(), std::move(what), std::string(remedy(ec)));
}

}  // namespace holdfast
