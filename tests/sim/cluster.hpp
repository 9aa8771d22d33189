// A server of a Redis Cluster as clients see it: whose it takes each slot for, and where it sends
// those that ask for the others. What it does beside that is the simulation's Redis server's.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "redis.hpp"

namespace holdfast::sim {

using Slot = std::uint16_t;
inline constexpr std::size_t slot_count = 16384;

/// By the key's {tag}, where it has one.
Slot slot_of(std::string_view key);

/// The others are numbers here, and each is at the host of its number.
class ClusterServer final : public Redis {
public:
    /// Of `all` servers the first `primaries` have as many slots each; then come their replicas.
    ClusterServer(Kernel&, std::size_t number, std::size_t primaries, std::size_t all);

    /// One that says where its names are, and has not heard that another one has its slots.
    bool leads() const { return follows_[number_] == number_; }
    std::size_t owner(Slot s) const { return owners_.at(s); }
    /// It runs, and takes the cluster for whole.
    bool serves() const;
    std::vector<std::string> keys_in(Slot);

    // --- what happens to it
    /// Another one says which slots it has, and since which epoch. True: that one has its last
    /// slot, and it is a replica from now on.
    bool hear(const ClusterServer&);
    /// A replica takes over what its primary had.
    void take_over(std::uint64_t of_epoch);
    /// A slot is on its way to another one, or from there.
    void begin_leaving(Slot s, std::size_t to) { leaving_[s] = to; }
    void begin_coming(Slot s) { coming_.insert(s); }
    /// The slot is its own now, whatever the others say.
    void own(Slot, std::uint64_t of_epoch);
    /// It misses most of the others, and refuses everything that has a key.
    void fail_until(Nanos moment) { fails_until_ = std::max(fails_until_, moment); }
    void rejoin() { fails_until_ = 0; }

    /// What it answers to one command by itself, behind ASKING or not.
    std::string ask(const std::vector<std::string>& words, bool asking);
    /// As it names a server.
    static std::string id_of(std::size_t server);

private:
    struct Range {
        std::size_t first, last, owner;
    };
    std::string answer(Session&, const Words&) override;
    model::Wire wire() override;
    /// Why it does not do this command, as it says it; empty: it does.
    std::string refusal(const Words&);
    std::string redirect(const char* word, Slot, std::size_t to) const;
    std::string about(const Words&) const;
    std::vector<Range> ranges() const;
    std::string slots() const;
    std::string nodes() const;

    const std::size_t number_;
    std::vector<std::size_t> follows_;   ///< of each server its primary, which may be itself
    std::vector<std::uint64_t> epochs_;  ///< of each server, as it has heard
    std::array<std::uint8_t, slot_count> owners_{};
    std::map<Slot, std::size_t> leaving_;
    std::set<Slot> coming_;
    Nanos fails_until_ = 0;
    bool asking_ = false;  ///< the command that it does now comes behind ASKING
};

}  // namespace holdfast::sim
