// Defaults for what a backend leaves out.
#include "holdfast/spi/backend.hpp"

namespace holdfast::spi {

void BackendEvents::asked(std::string_view) {}

awaitable<result<Inspection>> Backend::inspect(std::string_view, boot_clock::time_point,
                                               std::string&) {
    co_return make_error_code(errc::not_supported);
}

awaitable<result<std::vector<std::string>>> Backend::list(std::string_view, std::size_t,
                                                          boot_clock::time_point, std::string&) {
    co_return make_error_code(errc::not_supported);
}

awaitable<result<std::vector<Broken>>> Backend::break_lock(std::string_view, const BreakOptions&,
                                                           boot_clock::time_point, std::string&) {
    co_return make_error_code(errc::not_supported);
}

awaitable<error_code> Backend::record_break(std::string_view, std::string, boot_clock::time_point,
                                            std::string&) {
    co_return make_error_code(errc::not_supported);
}

awaitable<result<std::string>> Backend::recorded_break(std::string_view, boot_clock::time_point,
                                                       std::string&) {
    co_return make_error_code(errc::not_supported);
}

awaitable<result<std::vector<Holder>>> Backend::request_release(std::string_view,
                                                                const HolderFilter&,
                                                                boot_clock::time_point,
                                                                std::string& detail) {
    detail = to_string(Capability::release_request);
    co_return make_error_code(errc::not_supported);
}

awaitable<result<Examination>> Backend::examine(boot_clock::time_point, std::string&) {
    Examination found;
    found.capabilities = capabilities();
    co_return found;
}

}  // namespace holdfast::spi
