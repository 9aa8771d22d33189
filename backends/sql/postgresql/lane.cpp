// The blocking path: one step, one statement, on the caller's thread and a connection of its own.
#include <random>

#include "backend.hpp"
#include "errors.hpp"

namespace holdfast::postgresql {
namespace {

class Lane final : public spi::Lane {
public:
    Lane(std::shared_ptr<Shared> shared, std::shared_ptr<Line> line)
        : shared_(shared), line_(std::move(line)), connection_(shared, Connection::Resolve::no) {
        // Programs that release once and end should sweep now and then as well.
        until_sweep_ = 1 + std::random_device{}() % 64;
    }

    void attempt(spi::Attempt& a) noexcept override {
        Step s;
        try {
            s = step_of(*shared_, Step::Kind::attempt, a);
            run(s);
        } catch (const std::exception&) {
            // Whether the statement ended is not known here; the engine finds out.
            connection_.close();
            s.outcome = spi::Attempt::Doubt{make(Error::no_resources)};
        }
        try {
            take(std::move(s), *shared_, a);
        } catch (const std::exception&) {
            a.outcome = spi::Attempt::Doubt{make(Error::no_resources)};
        }
    }

    void release(spi::Held& h) noexcept override {
        h.released = ReleaseResult::unreachable;
        try {
            Step s = step_of(*shared_, Step::Kind::release, h);
            run(s);
            h.released = s.released;
            h.handed_on = s.handed_on;
            if (s.handed_on)
                line_->handed_on_elsewhere(s.key);
            else if (s.freed)
                line_->freed_elsewhere(s.key);
            if (s.released != ReleaseResult::released) return;
            if (--until_sweep_ != 0) return;
            until_sweep_ = 1024;
            sweep(connection_, h.deadline, cursor_);
        } catch (const std::exception&) {
            connection_.close();
        }
    }

private:
    void run(Step& s) {
        Step* const one = &s;
        run_steps(connection_, {&one, 1});
    }

    const std::shared_ptr<Shared> shared_;
    const std::shared_ptr<Line> line_;
    Connection connection_;
    unsigned until_sweep_;
    std::string cursor_;
};

}  // namespace

std::unique_ptr<spi::Lane> make_lane(std::shared_ptr<Shared> shared, std::shared_ptr<Line> line) {
    return std::make_unique<Lane>(std::move(shared), std::move(line));
}

}  // namespace holdfast::postgresql
