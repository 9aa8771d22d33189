// Defaults for what a backend leaves out.
#include "holdfast/spi/backend.hpp"

namespace holdfast::spi {

void BackendEvents::asked(std::string_view) {}

awaitable<result<Survey>> Backend::survey(std::string_view, boot_clock::time_point, std::string&) {
    co_return make_error_code(errc::not_supported);
}

awaitable<result<Survey>> Backend::tell(std::string_view, const HolderFilter&, Tell what,
                                        boot_clock::time_point, std::string& detail) {
    if (what == Tell::asked) detail = to_string(Capability::release_request);
    co_return make_error_code(errc::not_supported);
}

awaitable<result<std::string>> Backend::note(std::string_view, std::optional<std::string>,
                                             boot_clock::time_point, std::string&) {
    co_return make_error_code(errc::not_supported);
}

awaitable<result<std::vector<std::string>>> Backend::list(std::string_view, std::size_t,
                                                          boot_clock::time_point, std::string&) {
    co_return make_error_code(errc::not_supported);
}

awaitable<result<Examination>> Backend::examine(boot_clock::time_point, std::string&) {
    Examination found;
    found.capabilities = capabilities();
    co_return found;
}

}  // namespace holdfast::spi
