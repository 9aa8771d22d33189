// What to warn of about the storage of secrets, before it is needed.
#pragma once
#include <string>

#include "holdfast/spi/settings.hpp"

namespace holdfast::spi {

/// One sentence when every user of the machine may read a password file; else empty.
std::string exposure(const Settings&);
/// The same of the private key of TLS. (libpq refuses such a key itself.)
std::string key_exposure(const Settings&);

}  // namespace holdfast::spi
