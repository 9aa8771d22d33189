// The blocking path of a backend on a table: one step, on the caller's thread and on a connection
// of its own.
#pragma once
#include <random>
#include <string>
#include <utility>

#include "holdfast/spi/backend.hpp"
#include "step.hpp"
#include "sweep_pace.hpp"

namespace holdfast::sql {

template <class Step, class Connection>
class Lane : public spi::Lane {
public:
    template <class... Arguments>
    explicit Lane(std::string prefix, Arguments&&... of_the_connection)
        : connection_(std::forward<Arguments>(of_the_connection)...), prefix_(std::move(prefix)) {}

    void attempt(spi::Attempt& a) noexcept final {
        const auto use = connection_.use();
        Step s;
        try {
            s = Step(Step::Kind::attempt, prefix_, a);
            run(s);
        } catch (const std::exception&) {
            // Whether the transaction ended is not known here; the engine finds out.
            connection_.close();
            s.unknown(no_memory());
        }
        try {
            answered(s, a);
        } catch (const std::exception&) {
            a.outcome = spi::Attempt::NoAnswer{no_memory().why};
        }
    }

    void release(spi::Held& h) noexcept final {
        const auto use = connection_.use();
        h.released = ReleaseResult::unreachable;
        try {
            Step s(Step::Kind::release, prefix_, h);
            run(s);
            s.tell(h);
            released(s, h);
            if (s.freed && pace_.due()) sweep(h.deadline);
        } catch (const std::exception&) {
            connection_.close();
        }
    }

protected:
    virtual void run(Step& s) {
        Step* const one = &s;
        run_steps(connection_, {&one, 1});
    }
    virtual void answered(Step& s, spi::Attempt& a) { s.tell(a); }
    /// Called after the answer to a release.
    virtual void released(const Step&, spi::Held&) {}
    /// Deletes rows that nobody needs any more, until the deadline.
    virtual void sweep(boot_clock::time_point deadline) = 0;

    Connection connection_;

private:
    const std::string prefix_;
    // Programs that release once and end should sweep now and then as well.
    SweepPace pace_{1 + std::random_device{}() % 64};
};

}  // namespace holdfast::sql
