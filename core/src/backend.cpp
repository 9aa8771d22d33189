// Defaults for what a backend leaves out.
#include "holdfast/spi/backend.hpp"

namespace holdfast::spi {

void BackendEvents::asked(std::string_view) {}

void BackendEvents::changed(std::string_view) {}

void BackendEvents::moved(std::string, std::string) {}

const void* Backend::server_of(std::string_view) const noexcept {
    return nullptr;
}

awaitable<Answer<Survey>> Backend::survey(std::string_view, boot_clock::time_point) {
    co_return Failure(errc::not_supported);
}

awaitable<Answer<Survey>> Backend::tell(std::string_view, const HolderFilter&, Tell what,
                                        boot_clock::time_point) {
    if (what != Tell::asked) co_return Failure(errc::not_supported);
    co_return Failure(errc::not_supported, std::string(to_string(Capability::release_request)));
}

awaitable<Answer<std::string>> Backend::note(std::string_view, std::optional<std::string>,
                                             boot_clock::time_point) {
    co_return Failure(errc::not_supported);
}

awaitable<Answer<std::vector<std::string>>> Backend::list(std::string_view, std::size_t,
                                                          boot_clock::time_point) {
    co_return Failure(errc::not_supported);
}

void Backend::watch(std::string_view, bool) {}

awaitable<Answer<Examination>> Backend::examine(boot_clock::time_point) {
    Examination found;
    found.capabilities = capabilities();
    co_return found;
}

}  // namespace holdfast::spi
