// The blocking path: one step, one statement, on the caller's thread and a connection of its own.
#include <random>

#include "backend.hpp"
#include "errors.hpp"

namespace holdfast::postgresql {
namespace {

class Lane final : public spi::Lane {
public:
    explicit Lane(std::shared_ptr<Shared> shared)
        : shared_(shared), connection_(std::move(shared), Connection::Resolve::no) {
        // Programs that release once and end should sweep now and then as well.
        until_sweep_ = 1 + std::random_device{}() % 64;
    }

    void attempt(spi::Attempt& a) noexcept override {
        Step s;
        try {
            s = Step(Step::Kind::attempt, shared_->options.prefix, a);
            run(s);
        } catch (const std::exception&) {
            // Whether the statement ended is not known here; the engine finds out.
            connection_.close();
            s.outcome = spi::Attempt::NoAnswer{make(Error::no_resources)};
        }
        try {
            take(std::move(s), *shared_, a);
        } catch (const std::exception&) {
            a.outcome = spi::Attempt::NoAnswer{make(Error::no_resources)};
        }
    }

    void release(spi::Held& h) noexcept override {
        h.released = ReleaseResult::unreachable;
        try {
            Step s(Step::Kind::release, shared_->options.prefix, h);
            run(s);
            h.released = s.released;
            h.release_error = s.error;
            h.detail = s.detail;
            h.handed_on = s.handed_on;
            if (s.handed_on)
                shared_->waiters->handed_on_elsewhere(s.key);
            else if (s.freed)
                shared_->waiters->freed_elsewhere(s.key);
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
    Connection connection_;
    unsigned until_sweep_;
    std::string cursor_;
};

}  // namespace

std::unique_ptr<spi::Lane> make_lane(std::shared_ptr<Shared> shared) {
    return std::make_unique<Lane>(std::move(shared));
}

}  // namespace holdfast::postgresql
