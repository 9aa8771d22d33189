// The suite's ground on a PostgreSQL server.
#include "ground.hpp"

#include "../sql/table_ground.hpp"
#include "holdfast/lab/postgres_server.hpp"

namespace suite {
namespace {

const AddGround postgresql{
    "postgresql", [] { return std::make_unique<TableGround<lab::PostgresServer>>("postgresql"); },
    all_but({C::fifo, C::watch}), break_traced};

}  // namespace
}  // namespace suite
