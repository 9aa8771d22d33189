// Any bytes as a URL: either a checked choice, or an error with words; the words never contain what
// stands where the password does.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "fuzz_registry.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const holdfast::spi::Registry registry = holdfast::fuzz::registry();
    const std::string_view url(reinterpret_cast<const char*>(data), size);
    holdfast::Diagnostics words;
    const auto chosen = holdfast::parse_url(url, registry, words);
    if (chosen.has_value() != words.entries.empty()) std::abort();
    if (chosen && chosen->backend == nullptr) std::abort();
    return 0;
}
