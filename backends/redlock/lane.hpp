// The blocking path: writes to all nodes, then reads whichever answers, all on the calling thread.
#pragma once
#include <poll.h>

#include <memory>
#include <vector>

#include "../resp/lane_link.hpp"
#include "drive.hpp"

namespace holdfast::redlock {

/// It is its own CleanUp, which hands what is left to do to the engine.
class Lane final : public spi::Lane, private CleanUp {
public:
    Lane(std::shared_ptr<Deployment>, const std::shared_ptr<tls::Context>&);
    ~Lane() override;
    void attempt(spi::Attempt&) noexcept override;
    void release(spi::Held&) noexcept override;

private:
    /// Opens links to all nodes that are not known to be down: ready, or connecting.
    void open_links(boot_clock::time_point now);
    /// Runs one begun round to its end.
    void drive(Round&, boot_clock::time_point now);
    /// Sends the request to the nodes that the round wants, if their links are ready. False: to
    /// none.
    bool ask(Round&, boot_clock::time_point now);
    void send(Round&, std::size_t node, unsigned number, bool text, boot_clock::time_point now);
    void read(Round&, std::size_t node, boot_clock::time_point now);
    void broke(Round&, std::size_t node, boot_clock::time_point now);
    /// Until when to wait for more answers; not later than now: the round is over.
    boot_clock::time_point limit(Round&, boot_clock::time_point now);
    /// Waits until then for activity of any node. False: poll() failed.
    bool wait(Round&, boot_clock::time_point& now, boot_clock::time_point until);
    Node& node(std::size_t i) const { return *deployment_->set->nodes[i]; }
    void look(std::size_t node, boot_clock::time_point now);
    void owe(std::size_t node, const Ask& release, boot_clock::time_point again,
             milliseconds ttl) override;
    void acquire_late(std::size_t node, const Ask&, const std::shared_ptr<void>& place) override;

    /// One node in the round under way.
    struct Part {
        bool asked = false;     ///< the answer to the last request is still to come
        bool repeated = false;  ///< the request was repeated, since it was late
        unsigned number = 0;    ///< of that request
    };
    /// Null: nothing is requested any more.
    void set_request(const spi::Attempt*);

    std::shared_ptr<Deployment> deployment_;
    LaneRequest request_;
    std::vector<std::unique_ptr<resp::LaneLink>> links_;
    std::vector<Part> parts_;
    std::vector<pollfd> polled_;
    std::vector<std::size_t> polled_nodes_;
    std::uint32_t round_ = 0;
    boot_clock::time_point next_look_{}, decided_{};
    Command command_;
    // The last value set here, and the connections used: requests sent over the same ones later are
    // also executed later.
    std::string last_value_;
    std::vector<unsigned> last_links_;
    bool same_value_ = false;  // the round under way releases it
};

}  // namespace holdfast::redlock
