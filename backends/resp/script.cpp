#include "script.hpp"

#include <openssl/evp.h>

#include <array>
#include <stdexcept>

#include "errors.hpp"

namespace holdfast::resp {
namespace {

std::string sha1_hex(std::string_view text) {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned size = 0;
    if (EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha1(), nullptr) != 1)
        throw std::runtime_error("OpenSSL has no SHA1, by which Redis names its scripts");
    std::string out;
    for (unsigned i = 0; i < size; ++i) {
        out += "0123456789abcdef"[digest[i] >> 4U];
        out += "0123456789abcdef"[digest[i] & 15U];
    }
    return out;
}

}  // namespace

Script::Script(std::string text) : text_(std::move(text)), sha_(sha1_hex(text_)) {}

bool forgotten(const Reply& r) noexcept {
    return r.is(Reply::Type::error) && from_reply(r.text) == make(Error::no_script);
}

}  // namespace holdfast::resp
