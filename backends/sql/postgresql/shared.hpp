// Shared by all connections of one client.
#pragma once
#include <memory>
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
        : Server(postgresql::errors(), engine),
          options(s),
          statements(as_identifier(options.schema)),
          me(spi::make_owner({}).substr(0, 22)) {}

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

private:
    mutable std::mutex mutex_;
    std::string audited_, schema_;
    std::shared_ptr<const Statements> pinned_;
};

}  // namespace holdfast::postgresql
