// The schemes of the documents' variants: a registry of the bench's own, beside the linked one.
#pragma once
#include <holdfast/spi/registry.hpp>
#include <string>
#include <string_view>

namespace holdfast::bench {

/// For ClientOptions::registry: the documents' variants when the URL asks for one ("doc-redis://"),
/// null (everything that is linked in) otherwise.
const spi::Registry* registry_for(std::string_view url);

/// The documents' form on the server of a deployment of Holdfast's: "redis://h:1?x=y" gives
/// "doc-redis://h:1?", to which options are added.
std::string doc_url(std::string_view url);

// One file each, but for the databases, which share theirs.
spi::Descriptor redis_recipes();
spi::Descriptor redlock_recipe();
spi::Descriptor postgresql_recipes();
spi::Descriptor mysql_recipes();
spi::Descriptor zookeeper_recipes();

}  // namespace holdfast::bench
