#include "trial.hpp"

#include <iostream>
#include <memory>

#include "catch.hpp"

namespace test_support {
namespace {

/// Catch2 runs a test again for each further value of a generator in it.
class Trials final : public Catch::Generators::IGenerator<Trial*> {
public:
    Trials() { trial_.again(); }
    Trial* const& get() const override { return at_; }
    bool next() override { return trial_.again(); }

private:
#if CATCH_VERSION_MAJOR >= 3
    std::string stringifyImpl() const override {
        return "a trial";
    }
#endif
    Trial trial_;
    Trial* at_ = &trial_;
};

auto trials() {
#if CATCH_VERSION_MAJOR >= 3
    return Catch::Generators::GeneratorWrapper<Trial*>(new Trials);
#else
    return Catch::Generators::GeneratorWrapper<Trial*>(std::make_unique<Trials>());
#endif
}

}  // namespace

Trial& this_trial() {
    Trial& trial = *GENERATE(trials());
    trial.begin();
    return trial;
}

bool Trial::again() {
    constexpr int most = 4;
    if (made_ > 0 && (!void_ || made_ == most)) return false;
    ++made_;
    void_ = false;
    begin();
    return true;
}

bool Trial::is_void(bool explained) {
    constexpr int may_be_void = 3;
    if (!explained || made_ > may_be_void) return false;
    return void_ = true;
}

bool Trial::took_less(milliseconds took, milliseconds bound, std::string_view what) {
    const auto stall = stalls_.longest();
    // A word may pass through two threads, one after the other.
    if (took >= bound && is_void(2 * stall > (took - bound).count())) {
        std::cout << "void trial " << made_ << ": " << what << " took " << took.count() << " of "
                  << bound.count() << " ms; a thread that was due waited for " << stall << " ms"
                  << std::endl;
        return false;
    }
    INFO(what << "; a thread that was due waited for up to " << stall << " ms");
    CHECK(took.count() < bound.count());
    return true;
}

bool Trial::holds(bool asked, milliseconds limit, std::string_view what) {
    const auto stall = stalls_.longest();
    if (!asked && is_void(4 * stall >= limit.count())) {
        std::cout << "void trial " << made_ << ": " << what << "; of " << limit.count()
                  << " ms a thread that was due waited for " << stall << " ms" << std::endl;
        return false;
    }
    INFO(what << ", within " << limit.count() << " ms; a thread that was due waited for up to "
              << stall << " ms");
    CHECK(asked);
    return true;
}

}  // namespace test_support
