// How often a connection looks for rows that nobody needs any more.
#pragma once

namespace holdfast::sql {

/// Counts releases: a sweep is due after the first few, and after every thousandth from then on.
class SweepPace {
public:
    explicit SweepPace(unsigned first) noexcept : left_(first) {}
    bool due() noexcept {
        if (--left_ != 0) return false;
        left_ = 1024;
        return true;
    }

private:
    unsigned left_;
};

}  // namespace holdfast::sql
