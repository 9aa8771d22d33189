// The backend's options with their types, and the table that core checks and documents.
#pragma once
#include <string>
#include <vector>

#include "../resp/server.hpp"
#include "holdfast/capabilities.hpp"
#include "holdfast/spi/check.hpp"
#include "holdfast/spi/settings.hpp"

namespace holdfast::redis {

struct Options {
    milliseconds ttl{};             ///< default of a lock
    std::string prefix;             ///< the namespace
    bool plain = false;             ///< mode=plain
    bool queue = true;              ///< wait=queue
    long long replicas = 0;         ///< min_replicas_ack
    bool confirm_handover = false;  ///< handover=confirmed
    bool sentinels = false;         ///< the URL has Sentinels, not the server
    bool confirm = false;           ///< and what they do not confirm does not count
    bool cluster = false;           ///< the URL has servers of a cluster

    explicit Options(const spi::Settings&);
};

/// "redis+sentinel" or "rediss+sentinel".
bool of_sentinels(std::string_view scheme) noexcept;
/// "redis+cluster" or "rediss+cluster".
bool of_cluster(std::string_view scheme) noexcept;

/// Sentinels, and a cluster's servers about its slots, answer from memory: one that has not
/// answered within so long is not waited for.
milliseconds patience_with_answers(const spi::Settings&);

/// What the path of a URL with Sentinels says: /NAME or /NAME/DATABASE.
struct PrimaryName {
    std::string name;
    long long database = 0;
};
std::optional<PrimaryName> primary_of(std::string_view path);
/// The server with the data, wherever it is.
resp::Target data_target(const spi::Settings&);
resp::Target sentinel_target(const spi::Settings&, const spi::Endpoint&);

const std::vector<spi::OptionSpec>& option_table();
/// Without handover, which is `confirmed`: a message of a former primary would be a grant.
const std::vector<spi::OptionSpec>& sentinel_option_table();
const std::vector<spi::OptionSpec>& cluster_option_table();
void check(const spi::Settings&, Diagnostics&);
std::string identity(const spi::Settings&);
Capabilities promises(const spi::Settings&);
/// All checks of examine().
std::vector<spi::Check> all_checks();
std::vector<spi::Check> all_sentinel_checks();
std::vector<spi::Check> all_cluster_checks();

}  // namespace holdfast::redis
