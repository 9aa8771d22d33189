// In which order a Redis server lets in who asked, looked at after each of its commands: nobody
// passes a waiter that the server can reach, or that has looked again since it could not, or that
// takes no place beside it; who has left does not come back; and a name is as long closed after a
// grant as it has to be. Written after backends/redis/README.md, "What is sent" and "Keys".
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "redis.hpp"
#include "world.hpp"

namespace holdfast::sim {

class RedisOrder {
public:
    RedisOrder(Redis& server, std::vector<Name> names);
    /// This command was done. Answers what is wrong, in words.
    std::string look(const std::vector<std::string>& command, const std::string& reply,
                     const Process& client);
    /// What is in the lock's key, or in its parts, is this owner's.
    static bool has(const model::Store&, const Name&, const std::string& owner);
    /// What is wrong with this belief, in words; `machine`: whose clock ends what is stored.
    static std::string contradicts(const model::Store&, const Process& machine, const Belief&,
                                   const Name&);
    /// An owner that is in line, or whose place there has lapsed and could have been given back:
    /// its client was heard after its last word of that owner, and before the place lapsed.
    std::string stands(const Name&) const;

private:
    struct Waiter {
        std::string owner, channel;
        std::uint64_t take;
        std::int64_t alive;  ///< until then
        double place;
    };
    struct Line {
        std::map<std::string, std::uint64_t> holders;  ///< and their units
        std::vector<Waiter> waiters;                   ///< in their order
        bool stands(const std::string& owner) const;
    };
    static constexpr std::uint64_t all = 4294967295;
    static Line line_of(const model::Store&, const Name&);
    std::string compare(const Line& before, const Line& now, const Name&) const;
    /// What became of min_hold.
    std::string compare_closed(std::size_t name, const Line& before, const Line& now);
    void note_leaving(const std::vector<std::string>& command, const std::string& reply);
    void note_coming(const std::vector<std::string>& command);
    void came(const std::string& owner, double place);

    Redis& server_;
    const std::vector<Name> names_;
    std::vector<Line> lines_;        ///< after the last command
    std::set<std::string> left_;     ///< owners that the server let go
    std::set<std::string> unused_;   ///< of these, who had learnt of no grant
    std::set<std::string> foreign_;  ///< of clients that use SET alone
    std::set<std::string> silent_;   ///< waiters that the server could not reach at their last look
    struct Grant {
        std::string owner;
        std::int64_t at;  ///< by the server's clock, in milliseconds
        std::uint64_t units;
    };
    std::vector<std::vector<Grant>> grants_;  ///< of each name, while they count
    /// The earliest place of each owner. One that the server could not reach for a while comes back
    /// to it, and has passed nobody who came meanwhile.
    std::map<std::string, double> came_;
    /// By the server's clock, in milliseconds.
    struct Heard {
        const Process* client;
        std::int64_t at;
    };
    std::map<std::string, Heard> last_heard_;  ///< of each owner
    std::map<const Process*, std::vector<std::int64_t>> heard_;
};

}  // namespace holdfast::sim
