#include "../common/lane.hpp"

#include "backend.hpp"

namespace holdfast::sqlite {
namespace {

class Lane final : public sql::Lane<Step, Connection> {
public:
    explicit Lane(std::shared_ptr<DatabaseFile> file)
        : sql::Lane<Step, Connection>(file->name_prefix, file) {}

private:
    void run(Step& s) override {
        sql::Lane<Step, Connection>::run(s);
        if (s.freed) kick_neighbours(connection_.file());
        connection_.checkpoint();
    }
    void sweep(boot_clock::time_point deadline) override {
        sqlite::sweep(connection_, std::min(deadline, boot_clock::now() + milliseconds(20)));
    }
};

}  // namespace

std::unique_ptr<spi::Lane> Backend::open_lane() {
    return std::make_unique<Lane>(database_);
}

}  // namespace holdfast::sqlite
