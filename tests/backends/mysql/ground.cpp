// The suite's ground on a MariaDB server.
#include "ground.hpp"

#include "../sql/table_ground.hpp"
#include "holdfast/lab/mariadb_server.hpp"

namespace suite {
namespace {

const AddGround mysql{"mysql",
                      [] { return std::make_unique<TableGround<lab::MariadbServer>>("mysql"); },
                      all_but({C::fifo, C::notified, C::watch}), break_traced};

}  // namespace
}  // namespace suite
