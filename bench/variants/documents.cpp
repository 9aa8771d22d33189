#include "variants/documents.hpp"

namespace holdfast::bench {

namespace {

spi::Registry make_registry() {
    spi::Registry registry;
    registry.add(redis_recipes());
    registry.add(redlock_recipe());
    registry.add(postgresql_recipes());
    registry.add(mysql_recipes());
    registry.add(zookeeper_recipes());
    return registry;
}

}  // namespace

const spi::Registry* registry_for(std::string_view url) {
    static const spi::Registry registry = make_registry();
    return url.rfind("doc-", 0) == 0 ? &registry : nullptr;
}

std::string doc_url(std::string_view url) {
    return "doc-" + std::string(url.substr(0, url.find('?'))) + "?";
}

}  // namespace holdfast::bench
