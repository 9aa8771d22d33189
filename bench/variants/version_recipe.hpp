// The optimistic lock on a row with state and version, as articles print it and as it has to be.
#pragma once
#include <memory>
#include <string>

#include "variants/recipe.hpp"
#include "variants/sql_connection.hpp"

namespace holdfast::bench {

struct VersionHow {
    /// The UPDATE that follows the look at state and version.
    enum class Update : std::uint8_t {
        by_name,    ///< compares nothing: each that read "free" takes it
        uncounted,  ///< compares both, and nobody looks whether a row was updated
        counted     ///< compares both, and takes it only when a row was updated
    };
    SqlConnect connect;
    std::string table;
    Update update = Update::by_name;
    milliseconds pause{};  ///< zero: it does not wait
};

/// Connects, and makes the table. Errors: of SqlConnect.
std::unique_ptr<Recipe> make_version_recipe(const VersionHow&);

}  // namespace holdfast::bench
