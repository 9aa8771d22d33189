#include "scripts.hpp"

#include <openssl/evp.h>

#include <array>
#include <stdexcept>

#include "lua_texts.hpp"

namespace holdfast::redis {
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

template <class... Pieces>
Script join(Pieces... pieces) {
    return Script((std::string(pieces) + ...));
}

}  // namespace

Script::Script(std::string text) : text_(std::move(text)), sha_(sha1_hex(text_)) {}

const Scripts& Scripts::all() {
    static const Scripts scripts{
        .enter_one = join(lua::clock, lua::quick, lua::enter_one, lua::line, lua::enter,
                          lua::enter_one_slow),
        .enter_many = join(lua::clock, lua::quick, lua::line, lua::enter, lua::enter_many),
        // The clock is read after the quick way out.
        .leave_one = join(lua::quick_leave, lua::leave_one, lua::clock, lua::line, lua::leave,
                          lua::leave_one_slow),
        .leave_many = join(lua::quick_leave, lua::clock, lua::line, lua::leave, lua::leave_many),
        .renew = join(lua::clock, lua::renew),
        .inspect = join(lua::clock, lua::inspect),
        .break_lock = join(lua::clock, lua::line, lua::break_lock),
        .plain_release = Script(lua::plain_release),
        .plain_renew = Script(lua::plain_renew),
    };
    return scripts;
}

}  // namespace holdfast::redis
