// What became of each grant that a client has learnt of: until when its name has to stay closed,
// and what operators have asked for. By the time of the run, and no earlier or later than sure.
#pragma once
#include <list>
#include <string>
#include <vector>

#include "holdfast/client.hpp"
#include "world.hpp"

namespace holdfast::sim {

/// A request that was not answered takes effect no later.
inline constexpr Nanos latest = 10 * second;

/// An operator's call: it takes effect at some moment from `since` to `until`.
struct Order {
    enum class Kind : std::uint8_t { break_, break_now, ask };
    Kind kind{};
    std::size_t name = 0;
    std::string owner;  ///< empty: of any holder
    Nanos since = 0, until = never;
};

class History {
public:
    explicit History(World& w) : world_(w) {}

    /// This acquisition, asked for then, was answered; `fresh`: just now. Answers what is wrong, in
    /// words.
    std::string granted(const Belief&, Nanos asked, bool fresh);
    /// Its release begins. Until it is answered an operator's order may meet it.
    void let_go(const Belief&);
    void released(const std::string& owner);
    /// One more handle of what was let go: it was not the last one.
    void comes_back(const Belief&);

    Order& begin(Order);
    /// It was answered: so many were broken or asked. An answer that has not come may be that of a
    /// request which comes late.
    void ended(Order&, bool answered);
    void broken(const std::string& owner, Nanos since, Nanos by);
    void asked(const std::string& owner);
    /// An operator may have broken it; `now`: freed it at once.
    bool may_be_broken(const Belief&, bool now) const;
    /// The same of any holder of this name since then.
    bool may_be_broken(std::size_t name, Nanos from, bool now = false) const;
    bool any_break() const { return breaks_ > 0; }

    /// What is wrong with this belief, which is valid, in words.
    std::string contradicts(const Belief&) const;
    /// Grants keep the name closed at least until then.
    Nanos closed_until(std::size_t name) const;

private:
    struct Grant {
        const Belief* belief;  ///< null: it was let go
        std::size_t name;
        std::string owner;
        std::uint64_t units;
        Nanos begun;             ///< its call: from then on it may hold, as its server sees it
        Nanos from;              ///< granted no earlier, as its client counts
        Nanos learnt;            ///< when its client knew
        Nanos frozen;            ///< of its machine, by then
        Nanos until = never;     ///< when its release has ended, at the latest
        Nanos lost_by = never;   ///< broken: its holder has learnt of it by then
        Nanos asked_by = never;  ///< asked: its holder has learnt of it by then
    };
    std::uint64_t units(const Grant&) const;
    std::uint64_t all_of(const Name&) const;
    /// When its lease ends, as its client says now; 0: it was let go.
    Nanos end_of(const Grant&) const;
    Nanos closed_until(const Grant&) const;
    const Grant* find(const std::string& owner) const;
    bool meets(const Order&, const Grant&) const;
    bool is_ordered(const Grant&, Order::Kind) const;

    World& world_;
    std::list<Grant> grants_;
    std::list<Order> orders_;
    std::size_t breaks_ = 0;
};

}  // namespace holdfast::sim
