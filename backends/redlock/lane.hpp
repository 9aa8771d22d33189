// The blocking path: all nodes are written to, then whichever answers is read, all on the calling
// thread.
#pragma once
#include <poll.h>

#include <memory>
#include <vector>

#include "drive.hpp"
#include "lane_link.hpp"

namespace holdfast::redlock {

/// Its own Aftermath: what is left to be done is the engine's.
class Lane final : public spi::Lane, private Aftermath {
public:
    explicit Lane(std::shared_ptr<Fabric>);
    ~Lane() override;
    void attempt(spi::Attempt&) noexcept override;
    void release(spi::Held&) noexcept override;

private:
    /// Links to every node that is not known to be down: ready, or on their way.
    void open_links(boot_clock::time_point now);
    /// Runs one round that has begun to its end.
    void drive(Round&, boot_clock::time_point now);
    /// Asks whom the round wants asked, as far as their links are ready. False: nobody.
    bool ask(Round&, boot_clock::time_point now);
    void send(Round&, std::size_t node, unsigned number, bool text, boot_clock::time_point now);
    void read(Round&, std::size_t node, boot_clock::time_point now);
    void broke(Round&, std::size_t node, boot_clock::time_point now);
    /// Until when more answers are waited for; not later than now: the round is over.
    boot_clock::time_point limit(Round&, boot_clock::time_point now);
    /// Waits for whichever node does something until then. False: poll() failed.
    bool wait(Round&, boot_clock::time_point& now, boot_clock::time_point until);
    void look(std::size_t node, boot_clock::time_point now);
    void owe(std::size_t node, const Ask& release, boot_clock::time_point again,
             milliseconds ttl) override;
    void extend(std::size_t node, const Ask&, const std::shared_ptr<void>& place) override;

    /// A node's part in the round under way.
    struct Part {
        bool asked = false;     ///< its answer to the last request is still to come
        bool repeated = false;  ///< asked again as it was late
        unsigned number = 0;    ///< of that request
    };
    /// Null: nothing any more.
    void set_asked(const spi::Attempt*);

    std::shared_ptr<Fabric> fabric_;
    Asked asked_;
    std::vector<std::unique_ptr<LaneLink>> links_;
    std::vector<Part> parts_;
    std::vector<pollfd> polled_;
    std::vector<std::size_t> polled_nodes_;
    std::uint32_t round_ = 0;
    boot_clock::time_point used_{}, next_look_{}, decided_{};
    Command command_;
    // The last value taken here, and over which connections: what is sent over the same ones later
    // is also executed later.
    std::string last_value_;
    std::vector<unsigned> last_links_;
    bool same_value_ = false;  // the round under way releases it
};

}  // namespace holdfast::redlock
