// The blocking path: all nodes are written to, then whichever answers is read, all on the calling
// thread.
#pragma once
#include <poll.h>

#include <memory>
#include <vector>

#include "lane_link.hpp"
#include "rounds.hpp"

namespace holdfast::redlock {

class Lane final : public spi::Lane {
public:
    explicit Lane(std::shared_ptr<Fabric>);
    void attempt(spi::Attempt&) noexcept override;
    void release(spi::Held&) noexcept override;

private:
    class Step;
    class VoteStep;
    class ReleaseStep;

    void use(std::string_view name);
    /// Links to every node that is not known to be down: ready, or on their way.
    void open_links(boot_clock::time_point now);
    /// Runs one step: sends to every node that it wants, and gives it what comes back.
    void drive(Step&, boot_clock::time_point now, boot_clock::time_point deadline);
    void read(Step&, std::size_t node, boot_clock::time_point now);
    void broke(Step&, std::size_t node);
    void look(std::size_t node, boot_clock::time_point now);
    void owe(std::size_t node, std::string_view value, boot_clock::time_point again,
             milliseconds ttl);
    void try_attempt(spi::Attempt&);
    void try_release(spi::Held&);
    void lost(spi::Attempt&, const Tally&, Tally::Verdict);

    std::shared_ptr<Fabric> fabric_;
    std::vector<std::unique_ptr<LaneLink>> links_;
    std::vector<pollfd> polled_;
    std::vector<std::size_t> polled_nodes_;
    std::vector<bool> part_, asked_;  // in the step under way
    unsigned step_ = 0;
    boot_clock::time_point used_{}, next_look_{};
    Command command_;
    Tally tally_;
    std::string name_;  // whose keys these are: the same name mostly comes again
    Keys keys_;
    // The last value taken here, and over which connections: what is sent over the same ones later
    // is also executed later.
    std::string last_value_;
    std::vector<unsigned> last_links_;
};

}  // namespace holdfast::redlock
