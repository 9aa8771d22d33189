// One session at the servers: the places in line that end with it, the heartbeat that shows how
// long it surely lives, and the removal of whatever must not stay.
#pragma once
#include <deque>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "handle.hpp"
#include "line.hpp"
#include "validity.hpp"
#include "verified_parent.hpp"

namespace holdfast::zookeeper {

/// Engine thread only. Each session serves acquisitions of one ttl and one lock_delay. Their sum is
/// its time-out, so every lease is believed to end at least lock_delay before it.
class Session final : public std::enable_shared_from_this<Session>, public Ear {
public:
    Session(std::shared_ptr<Shared>, milliseconds ttl, milliseconds lock_delay);
    ~Session() override;

    void start();
    /// Whether new acquisitions may begin on it: it has not ended, and its proved time is not
    /// nearly used up.
    bool usable() const;
    /// Whether as much of the session's time is proved as its heartbeats can keep proved.
    bool well_proved(boot_clock::time_point now) const;
    /// How long the heartbeat under way, if any, has been unanswered.
    boot_clock::duration unanswered_for(boot_clock::time_point now) const;
    bool over() const noexcept { return over_; }
    /// Why the servers refuse what every session needs; no error while they do not.
    error_code refusal() const noexcept { return refused_; }
    std::string refusal_words() const {
        return refusal_words_.empty() ? refused_.message() : refusal_words_;
    }
    /// Why its requests have no effect, as far as it knows, and the words for that or another
    /// error.
    error_code why_silent() const;
    std::string words_of(error_code) const;
    /// Connects and authenticates by `deadline`, or returns why not.
    awaitable<error_code> ready(boot_clock::time_point deadline, std::string* detail);
    Handle& handle() const noexcept { return *handle_; }
    bool idle() const noexcept { return places_.empty(); }
    boot_clock::time_point last_used() const noexcept { return last_used_; }

    // --- places
    QueueNodePtr make_place(const spi::Attempt&);
    /// Requests its node once there is a connection and room. The session requests only as many at
    /// a time as can be answered in time; the others wait here.
    void enter(const QueueNodePtr&);
    /// When a node was last requested.
    boot_clock::time_point asked_last() const noexcept { return asked_last_; }
    /// Nothing is ahead of it that it has to wait for.
    bool lets_in(const QueueNode&) const;
    /// Whether something surely is. Requests what has to be known for that.
    bool blocked(const QueueNodePtr&);
    /// Whether a place of this client holds the name or stands in line for it, so that a single try
    /// fails without a request.
    bool known_busy(const spi::Attempt&) const;
    /// Strangers in the last list of its line.
    const std::vector<std::string>& strangers_beside(const QueueNode& p) {
        return line(p).strangers;
    }
    /// Ensures that the node ahead of it is watched, and lists the whole line now and then.
    void keep_waiting(const QueueNodePtr&);
    /// Deletes its node, now or as soon as possible, so that nothing of it stays.
    void leave(const QueueNodePtr&, Outcome);
    /// Reads its own node, and watches it.
    void watch_own(const QueueNodePtr&);
    /// For permits: requests the limit, and the line at the name itself.
    void look_at_name(QueueNode&);
    /// From writer to reader, in its own node and its own place. Opens Shared::beats on the answer.
    void downgrade(const QueueNodePtr&);

    /// Where robust=true records how the last holder ended.
    std::string mark_path(const std::string& name) const;

    // --- what is known of the session's life
    /// The longest lease: what the servers grant the session, less lock_delay.
    milliseconds lease_time() const noexcept { return handle_->timeout() - lock_delay_; }
    /// The base for a lease of that ttl, requested at `sent`: it is valid as if granted then.
    boot_clock::time_point base_for(milliseconds ttl, boot_clock::time_point sent) const;
    std::uint64_t beats_sent() const noexcept { return sent_; }
    std::uint64_t beats_answered() const noexcept { return answered_; }
    /// Writes as soon as no other write is under way, instead of at the next heartbeat. Returns the
    /// number of that write.
    std::uint64_t prove();
    milliseconds interval() const;
    /// Time between heartbeats. After an outage the last proof is too old, and three writes must be
    /// acknowledged before the leases end, as fast as the chain allows.
    milliseconds pace(boot_clock::time_point now) const;

    /// No new acquisition begins on it.
    void retire() noexcept { retired_ = true; }
    bool retired() const noexcept { return retired_; }
    awaitable<void> close(boot_clock::time_point deadline);
    void drop();

    // --- Ear
    void connected(bool first) override;
    void disconnected() override;
    void ended(int rc) override;
    void changed(std::string_view path, bool deleted) override;
    void children_changed(std::string_view path) override;
    bool outlives_change(boot_clock::duration answer) const override;

private:
    /// The end of what is proved for leases on it. Only once it was created.
    boot_clock::time_point surely_until() const;
    Line& line(const QueueNode&);
    void create_base();
    void create_parent(const std::string& path, std::string_view data, Handle::Kind,
                       Handle::Then = {});
    /// Why a node below it was not made: ZNONODE says no more than that a parent is missing.
    error_code why_not_made(int rc) const;
    void create_parents(const QueueNode&);
    void watch_parent(const std::string& parent);
    void find_rank(const QueueNodePtr&, bool foreseen);
    void note_clear(const QueueNode&);
    void let_in();
    void give_room();
    void create_node(const QueueNodePtr&);
    /// With `foreseen` it was requested without a list: it is expected to be the first.
    void created(const QueueNodePtr&, bool foreseen, Call&);
    /// Its node exists. False: another node may have the same number, so it is removed again.
    bool stands(const QueueNodePtr&, std::string node, std::int64_t czxid);
    void look_for(const QueueNodePtr&);
    void resolve_doubts(Line&, std::uint64_t number, const std::vector<std::string>& children);
    void adopt(const QueueNodePtr&, const std::string& node);
    void sweep_ghosts(boot_clock::time_point now);
    void remove_ghost(const std::string& parent, const std::string& node);
    void refuse(error_code, std::string words = {});
    void ask_for_ensemble();
    void want_list(Line&);
    /// Forgets lines without places, and repeats refused looks for a node.
    void see_to_lines();
    void listed(const std::string& parent, std::uint64_t number, Call&);
    void look_along(Line&);
    void look_along_permits(Line&);
    /// Permits beyond the first are deleted one by one.
    void forget_permits(QueueNode&);
    void ask_watch(Line&, const std::string& node);
    void blocker_seen(const std::string& parent, const std::string& node, const Call&);
    void vanished(Line&, const std::string& node);
    void let_in_behind(Line&, const std::vector<QueueNodePtr>& behind);
    void remove_node(const QueueNodePtr&);
    void removed(const QueueNodePtr&, int rc, bool with_mark, bool several);
    /// It may not stand in its line.
    void refuse_place(const QueueNodePtr&, error_code why);
    void end_place(const QueueNodePtr&, QueueNode::State, error_code);
    void own_changed(const QueueNodePtr&, bool deleted);
    void own_seen(const QueueNodePtr&, Call&);
    void restore(const QueueNode&);
    void downgraded(const QueueNodePtr&);
    std::string data_of(const QueueNode&, bool reading) const;
    void arm_beat(boot_clock::time_point);
    void beat();
    void send_beat(bool chained);
    void beat_answered(boot_clock::time_point sent, bool chained, bool creating, int rc);
    void expire_places(boot_clock::time_point now);
    void fail_all(error_code);
    void give_up_waiting(boot_clock::time_point now);

    const std::shared_ptr<Shared> shared_;
    const milliseconds ttl_, lock_delay_;
    std::shared_ptr<Handle> handle_;
    Validity validity_;
    bool over_ = false, retired_ = false, has_containers_ = true, gave_up_ = false;
    error_code refused_;
    std::string refusal_words_;
    spi::net::Gate state_gate_;
    boot_clock::time_point last_used_;
    bool ensemble_known_;  ///< several hosts are one ensemble, or cannot be asked
    std::optional<boot_clock::time_point> disconnected_since_;

    std::set<QueueNodePtr, InOrder> places_;  ///< in order of arrival, also after an outage
    std::uint64_t last_serial_ = 0;
    std::deque<QueueNodePtr> entering_;
    std::size_t asking_ = 0;
    boot_clock::time_point asked_last_;
    std::unordered_map<std::string, Line> lines_;
    std::unordered_map<std::string, VerifiedParent> known_parents_;
    std::uint64_t lives_ = 0;
    error_code no_parent_;  ///< why a parent was not made, if the servers refused that lately
    /// To be deleted, with a heartbeat, until the servers say that it is gone. Without a node:
    /// whatever has that guid, whose request may still arrive by another connection.
    struct Ghost {
        std::string parent, guid, node;
        boot_clock::time_point due;
    };
    std::vector<Ghost> ghosts_;

    asio::steady_timer beat_timer_;
    const std::string beacon_;
    bool has_beacon_ = false, beating_ = false, prove_soon_ = false;
    bool behind_ = false;    ///< nothing was written since the connection broke
    bool unproved_ = false;  ///< nothing was proved since then
    std::uint64_t sent_ = 0, answered_ = 0;
    boot_clock::time_point chain_due_, beat_sent_;
};
using SessionPtr = std::shared_ptr<Session>;

}  // namespace holdfast::zookeeper
