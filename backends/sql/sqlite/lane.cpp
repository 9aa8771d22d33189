// The blocking path: one step, one transaction, on the caller's thread and a connection of its own.
#include <random>

#include "backend.hpp"
#include "errors.hpp"

namespace holdfast::sqlite {
namespace {

class Lane final : public spi::Lane {
public:
    explicit Lane(std::shared_ptr<DatabaseFile> file) : connection_(std::move(file)) {
        // Programs that release once and end should sweep now and then as well.
        until_sweep_ = 1 + std::random_device{}() % 64;
    }

    void attempt(spi::Attempt& a) noexcept override {
        const auto use = connection_.use();
        try {
            Step s(Step::Kind::attempt, connection_.database().name_prefix, a);
            run(s);
            connection_.checkpoint();
            a.outcome = s.outcome;
            a.detail = std::move(s.detail);
        } catch (const std::exception&) {
            // Whether the transaction ended is not known here; the engine finds out.
            connection_.close();
            a.outcome = spi::Attempt::NoAnswer{make_error(SQLITE_NOMEM)};
        }
    }

    void release(spi::Held& h) noexcept override {
        const auto use = connection_.use();
        try {
            Step s(Step::Kind::release, connection_.database().name_prefix, h);
            run(s);
            h.released = s.released;
            if (s.freed) kick_neighbours(connection_.file());
            if (s.freed && --until_sweep_ == 0) {
                until_sweep_ = 1024;
                sweep(connection_, std::min(h.deadline, boot_clock::now() + milliseconds(20)));
            }
            connection_.checkpoint();
        } catch (const std::exception&) {
            connection_.close();
            h.released = ReleaseResult::unreachable;
        }
    }

private:
    void run(Step& s) {
        Step* const one = &s;
        run_steps(connection_, {&one, 1});
    }

    Connection connection_;
    unsigned until_sweep_;
};

}  // namespace

std::unique_ptr<spi::Lane> make_lane(std::shared_ptr<DatabaseFile> file) {
    return std::make_unique<Lane>(std::move(file));
}

}  // namespace holdfast::sqlite
