// Shared by all connections of one client.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "../common/server.hpp"
#include "errors.hpp"
#include "holdfast/spi/owner.hpp"
#include "options.hpp"
#include "statements.hpp"

namespace holdfast::postgresql {

class Waiters;
using Step = sql::ServerStep;

struct Shared : sql::Server {
    Shared(const spi::Settings& s, const boost::asio::any_io_executor& engine)
        : Shared(Options(s), engine) {}
    const Options options;
    const Statements statements;       ///< until the schema of the table is known
    const std::string me;              ///< the id of this client in a line
    std::shared_ptr<Waiters> waiters;  ///< this client's waiters; set with the client

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

    /// Whether a server that says of itself that it takes writes may be used: one that this client
    /// has seen replaced may not. `timeline`: nothing where it does not say.
    spi::Failure judge_origin(const std::string& cluster, std::optional<std::uint32_t> timeline);

private:
    Shared(Options o, const boost::asio::any_io_executor& engine)
        : Server(postgresql::errors(), engine,
                 o.socket.empty() ? o.hosts
                                  : std::vector<spi::Endpoint>{{"", o.hosts.front().port}}),
          options(std::move(o)),
          statements(as_identifier(options.schema)),
          me(spi::make_owner({}).substr(0, 22)) {}

    mutable std::mutex mutex_;
    std::string audited_, schema_;
    std::string cluster_;         ///< its system identifier
    std::uint32_t timeline_ = 0;  ///< the latest that a primary had
    std::shared_ptr<const Statements> pinned_;
};

}  // namespace holdfast::postgresql
