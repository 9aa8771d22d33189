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

int tell(hf_error* error, const Failure& f) noexcept {
    if (f.code == HF_OK || error == nullptr) return f.code;
    hf_error told = HF_ERROR;
    told.code = f.code;
    told.native = f.native;
    std::size_t n = std::min(f.words.size(), sizeof told.message - 1);
    while (n < f.words.size() && n > 0 && (static_cast<unsigned char>(f.words[n]) & 0xC0U) == 0x80U)
        --n;  // not in the middle of a character
    std::copy_n(f.words.begin(), n, told.message);
    told.message[n] = '\0';
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
