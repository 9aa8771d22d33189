// Any bytes as a holdfast.toml: either a checked file, or an error with words.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "fuzz_registry.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const holdfast::spi::Registry registry = holdfast::fuzz::registry();
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    holdfast::Diagnostics words;
    const auto file = holdfast::read_config_text(text, "fuzz.toml", registry, words);
    if (file.has_value() != words.entries.empty()) std::abort();
    return 0;
}
