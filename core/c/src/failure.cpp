#include "failure.hpp"

#include <algorithm>

#include "holdfast/spi/exhausted.hpp"
#include "sized.hpp"

namespace holdfast::c {
namespace {

static_assert(HF_CONTENDED == static_cast<int>(errc::contended) &&
              HF_LOST == static_cast<int>(errc::lost) &&
              HF_DENIED == static_cast<int>(errc::denied) &&
              HF_FORKED == static_cast<int>(errc::forked));

int code_of(const error_code& ec) {
    if (!ec) return HF_OK;
    for (int c = HF_CONTENDED; c <= HF_FORKED; ++c)
        if (ec == static_cast<errc>(c)) return c;
    return HF_INTERNAL;
}

}  // namespace

Failure::Failure(error_code ec, const Diagnostics& details)
    : code(code_of(ec)), native(ec.value()), words(details.text()) {
    if (ec && words.empty()) words = ec.message();
}

void write(char* to, std::size_t room, std::string_view text) noexcept {
    std::size_t n = std::min(text.size(), room - 1);
    while (n < text.size() && n > 0 && (static_cast<unsigned char>(text[n]) & 0xC0U) == 0x80U)
        --n;  // not in the middle of a character
    std::copy_n(text.begin(), n, to);
    to[n] = '\0';
}

int tell(hf_error* error, const Failure& f) noexcept {
    if (f.code == HF_OK || error == nullptr) return f.code;
    hf_error told = HF_ERROR;
    told.code = f.code;
    told.native = f.native;
    write(told.message, sizeof told.message, f.words);
    give(*error, told);
    return f.code;
}

Failure of_current_exception() {
    try {
        throw;
    } catch (const BadStruct& e) {
        return {errc::bad_config, e.what()};
    } catch (const std::exception& e) {
        if (!spi::is_exhausted(e)) return {HF_INTERNAL, e.what()};
        return {HF_EXHAUSTED, std::string(e.what()) + '\n' + std::string(spi::exhausted_remedy)};
    }
}

}  // namespace holdfast::c
