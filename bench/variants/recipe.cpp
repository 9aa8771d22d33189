#include "variants/recipe.hpp"

#include <unistd.h>

#include <csignal>
#include <exception>

namespace holdfast::bench {

namespace {

class RecipeBackend final : public spi::Backend {
public:
    explicit RecipeBackend(MakeRecipe make) : make_(std::move(make)) {}

    const Capabilities& capabilities() const noexcept override { return capabilities_; }

    spi::awaitable<void> attempt(std::span<spi::Attempt* const> items) override {
        for (spi::Attempt* a : items)
            take(*a);
        co_return;
    }
    spi::awaitable<void> withdraw(std::span<spi::Attempt* const> items) override {
        for (spi::Attempt* a : items) {
            if (a->place) give_back(std::string(a->name), std::string(a->owner), a->detail);
            a->withdrawal = {};
        }
        co_return;
    }
    spi::awaitable<void> renew(std::span<spi::Held* const> items) override {
        for (spi::Held* h : items)
            h->renewal = spi::Held::Renewal::unknown;  // no document's lock here has a watchdog
        co_return;
    }
    spi::awaitable<void> release(std::span<spi::Held* const> items) override {
        std::string words;
        for (spi::Held* h : items)
            h->released = give_back(std::string(h->name), std::string(h->owner), words);
        co_return;
    }
    std::uint64_t requests() const noexcept override {
        return counted_ == nullptr ? 0 : counted_.load()->requests();
    }

private:
    Recipe& recipe() {
        if (!recipe_) counted_ = (recipe_ = make_()).get();
        return *recipe_;
    }
    void take(spi::Attempt& a) {
        try {
            if (recipe().take(a)) {
                a.place = std::make_shared<bool>(true);
                spi::Attempt::Granted granted;
                granted.ttl = recipe().believes(a.ttl);
                a.outcome = granted;
            } else if (const auto pause = recipe().look_within()) {
                a.outcome = spi::Attempt::Busy{*pause};
            } else {
                a.outcome = spi::Attempt::Failed(make_error_code(errc::contended), true);
            }
        } catch (const std::exception& error) {
            a.detail = error.what();
            a.outcome = spi::Attempt::Failed(make_error_code(errc::unavailable));
        }
    }
    ReleaseResult give_back(const std::string& name, const std::string& owner,
                            std::string& words) noexcept {
        try {
            return recipe().give_back(name, owner);
        } catch (const std::exception& error) {
            words = error.what();
            return ReleaseResult::unreachable;
        }
    }

    const Capabilities capabilities_{SafetyClass::d,
                                     {Capability::cross_process, Capability::cross_host}};
    MakeRecipe make_;
    std::unique_ptr<Recipe> recipe_;
    std::atomic<Recipe*> counted_{nullptr};
};

}  // namespace

std::unique_ptr<spi::Backend> make_recipe_backend(MakeRecipe make) {
    return std::make_unique<RecipeBackend>(std::move(make));
}

void die_here() {
    kill(getpid(), SIGKILL);
    for (;;)
        pause();
}

}  // namespace holdfast::bench
