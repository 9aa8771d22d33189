// Shared by all connections of one client.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "../common/server.hpp"
#include "errors.hpp"
#include "holdfast/spi/owner.hpp"
#include "lines.hpp"
#include "options.hpp"
#include "statements.hpp"

namespace holdfast::postgresql {

class Waiters;
using Step = sql::ServerStep;

/// Which server is the primary, as far as this client has seen. Thread-safe.
class Origin {
public:
    /// Whether a server that says of itself that it takes writes may be used: one that this client
    /// has seen replaced may not. `timeline`: nothing where it does not say.
    spi::Failure judge(const std::string& cluster, std::optional<std::uint32_t> timeline);

private:
    std::mutex mutex_;
    std::string cluster_;         ///< its system identifier
    std::uint32_t timeline_ = 0;  ///< the latest that a primary had
};

struct Shared : sql::Server {
    Shared(const spi::Settings& s, const boost::asio::any_io_executor& engine)
        : Shared(Options(s), std::make_shared<sql::Watchdog>(engine)) {
        if (!options.listen.empty())
            direct = std::make_shared<Shared>(options, watchdog, options.listen, me, origin);
    }
    Shared(const Options& o, std::shared_ptr<sql::Watchdog> dog, std::vector<spi::Endpoint> at,
           std::string id, std::shared_ptr<Origin> seen)
        : Server(postgresql::errors(), std::move(dog), std::move(at)),
          options(o),
          statements(as_identifier(options.schema)),
          me(std::move(id)),
          origin(std::move(seen)) {}
    const Options options;
    const Statements statements;  ///< until the schema of the table is known
    const std::string me;         ///< the id of this client in a line
    const std::shared_ptr<Origin> origin;
    std::shared_ptr<Waiters> waiters;  ///< this client's waiters; set with the client
    Lines lines;
    /// The same servers past the pooler that the URL leads to, for notifications; null: the URL
    /// leads to them.
    std::shared_ptr<Shared> direct;

    /// Whether another connection has audited the table in its present state.
    bool audited(const std::string& which) const {
        const std::lock_guard hold(mutex_);
        return audited_ == which;
    }
    void audit_passed(const std::string& which) {
        const std::lock_guard hold(mutex_);
        audited_ = which;
    }

    /// The statements for the table in that schema. They name the schema, since search_path may
    /// lead to another one at any time.
    std::shared_ptr<const Statements> statements_in(const std::string& schema) {
        const std::lock_guard hold(mutex_);
        if (schema_ != schema || !pinned_) {
            pinned_ = std::make_shared<const Statements>(schema);
            schema_ = schema;
        }
        return pinned_;
    }

private:
    Shared(const Options& o, std::shared_ptr<sql::Watchdog> dog)
        : Shared(
              o, std::move(dog),
              o.socket.empty() ? o.hosts : std::vector<spi::Endpoint>{{"", o.hosts.front().port}},
              spi::make_owner({}).substr(0, 22), std::make_shared<Origin>()) {}

    mutable std::mutex mutex_;
    std::string audited_, schema_;
    std::shared_ptr<const Statements> pinned_;
};

}  // namespace holdfast::postgresql
