// For Descriptor::identity: the facts by which servers keep locks of one name apart.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/spi/settings.hpp"

namespace holdfast::spi {

/// Builds the text, one fact a line. Each fact has the same key in every configuration of the
/// backend, and a value in its canonical form: without what may be written in several ways. No
/// secrets: the text is compared, not shown, but a key may stand in an error.
class HOLDFAST_EXPORT IdentityText {
public:
    /// The servers. Two that differ are two, unless both may be this machine. Lists that overlap
    /// may be of one cluster.
    IdentityText& hosts(std::vector<Endpoint>);
    /// As hosts() for a Unix socket: it is on this machine, which a host may name, too.
    IdentityText& socket(std::string_view path, std::uint16_t port);
    /// Two values of it are surely two locks.
    IdentityText& part(std::string_view key, std::string_view value);
    /// The server decides by it: two values may be one lock or two, and so may one of this and one
    /// of part(). A call for both is refused.
    IdentityText& open(std::string_view key, std::string_view value);
    const std::string& text() const noexcept { return text_; }

private:
    IdentityText& line(std::string_view key, char sort, std::string_view value);
    std::string text_;
};

/// A path as the kernel would find it from here: absolute, without symbolic links where it exists.
/// Empty when the working directory is gone.
HOLDFAST_EXPORT std::string canonical_path(std::string_view);

}  // namespace holdfast::spi
