// A lock as documents write it: a few blocking requests on one connection, and nothing else. A
// recipe becomes a backend of Holdfast's public interface for backend authors, so that it runs
// under the same scenarios as Holdfast's own; never installed, unsafe on purpose.
#pragma once
#include <functional>
#include <holdfast/spi/backend.hpp>
#include <memory>
#include <optional>
#include <string>

namespace holdfast::bench {

/// One client's way to lock. Used by one thread at a time.
class Recipe {
public:
    virtual ~Recipe() = default;
    /// Tries once; true: taken. Errors: std::exception, after which nothing is held.
    virtual bool take(const spi::Attempt&) = 0;
    /// What the recipe does when its work is done. Errors: std::exception.
    virtual ReleaseResult give_back(const std::string& name, const std::string& owner) = 0;
    /// When a waiter looks again; empty: a caller that finds it taken is refused at once.
    virtual std::optional<milliseconds> look_within() const { return milliseconds(50); }
    /// Until when a holder believes. Most documents' holders never ask: for a day.
    virtual milliseconds believes(milliseconds) const { return std::chrono::hours(24); }

    std::uint64_t requests() const noexcept { return requests_.load(std::memory_order_relaxed); }

protected:
    void count() noexcept { requests_.fetch_add(1, std::memory_order_relaxed); }

private:
    std::atomic<std::uint64_t> requests_{0};
};

/// Connects on first use; may throw.
using MakeRecipe = std::function<std::unique_ptr<Recipe>()>;

/// The recipe behind Holdfast's interface. Its requests run on the engine's thread and block it:
/// the client does nothing else.
std::unique_ptr<spi::Backend> make_recipe_backend(MakeRecipe);

/// Ends this process by SIGKILL: the crash between two requests, where an option asks for it.
[[noreturn]] void die_here();

}  // namespace holdfast::bench
