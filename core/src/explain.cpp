#include "explain.hpp"

namespace holdfast {
namespace {

std::string_view remedy(const error_code& ec) noexcept {
    if (ec == errc::unavailable || ec == errc::in_doubt || ec == errc::no_quorum)
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

void explain(Diagnostics& out, const ResolvedBackend& resolved, const error_code& ec,
             std::string_view detail) {
    const boost::system::error_condition condition = ec.default_error_condition();
    std::string what =
        condition.category() == category() ? category().message(condition.value()) : ec.message();
    const std::string words(detail.empty() && ec.category() != category() ? ec.message() : detail);
    if (!words.empty() && words != what) what += " (" + words + ")";
    out.add(resolved.settings.display(), std::move(what), std::string(remedy(ec)));
}

}  // namespace holdfast
