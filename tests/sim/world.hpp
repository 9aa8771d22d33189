// One run: clients that use locks of one deployment, what goes wrong meanwhile, and what is checked
// after every step and at the end. All of it follows from the seed.
#pragma once
#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "holdfast/client.hpp"
#include "holdfast/election.hpp"
#include "holdfast/lease.hpp"
#include "holdfast/lock.hpp"
#include "holdfast/reentrant.hpp"
#include "system.hpp"
#include "told.hpp"

namespace holdfast::sim {

inline constexpr Nanos trouble_lasts = 15 * second;  ///< so long things go wrong

/// More units than there are of anything: what an exclusive holder has.
constexpr std::uint64_t many = 1'000'000;

/// One thing that goes wrong.
struct Fault {
    enum class Kind : std::uint8_t {
        slow,         ///< a client's bytes take long
        cut,          ///< one way or both
        break_off,    ///< connections break; one end or both learn of it
        freeze,       ///< a client's machine stands still
        kill,         ///< a client ends without a word
        restart,      ///< the server, with its data
        empty,        ///< the server restarts without any
        pause,        ///< the server's process
        isolate,      ///< a server and the others do not hear each other
        lose_writes,  ///< the server restarts without its last writes: no promise survives
        flush,        ///< the server loses its data and goes on: no promise survives
        clock_jump,   ///< that of the server, forward: no promise survives
        clock_back,   ///< that of the server, backward: no promise survives
        starve,       ///< a thread of a client's library gets no processor
        set_clock,    ///< that on the wall of a client's machine, by minutes
        promote,      ///< another server becomes the primary
        move_slot,    ///< a part of the names moves to another server
        count_
    };
    Kind kind{};
    Nanos from = 0, lasts = 0;
    std::size_t client = 0, server = 0;
    unsigned how = 0;
};
std::string to_string(const Fault&);
/// The kind of this name, one word each: "cut", "restart"; throws std::runtime_error.
Fault::Kind fault_named(std::string_view);

/// What the clients of some worlds do besides: `--no` leaves it out.
enum class Feature : std::uint8_t {
    sets,       ///< they acquire several locks, all or none
    owners,     ///< those of a Reentrant
    elections,  ///< of a leader
    handles,    ///< many of one grant, released in any order
    modes,      ///< several of a backend, on the same names
    limits,     ///< of a semaphore, which change
    far,        ///< some are far from the servers
    starved,    ///< threads of theirs get no processor for long
    clocks,     ///< theirs are set, and run apart by nearly as much as is allowed
    count_
};
/// Throws std::runtime_error, as fault_named().
Feature feature_named(std::string_view);

/// A name, and how it is used by all.
struct Name {
    std::string text;
    LockOptions options;
    /// Of a semaphore: from then on acquisitions have this limit. Earlier ones keep theirs.
    std::uint32_t next_limit = 0;
    Nanos changes_at = never;
    bool elects = false;  ///< a leader: it is held by nobody else
    bool changed(Nanos now) const { return now >= changes_at; }
};

class Listener;
struct Belief;

/// What its candidate knows of a term.
struct Term {
    std::size_t name = 0;
    std::string owner = {};  ///< empty: not yet elected
    FencingToken token = {};
    Nanos gone = never;              ///< when its release was answered
    const Belief** leads = nullptr;  ///< its candidate's: until its release begins
};

/// A grant, as its client sees it.
struct Belief {
    Belief(const Lease& l, Process& p, std::size_t number_of_name, std::uint32_t limit_of_all)
        : lease(&l),
          process(&p),
          name(number_of_name),
          owner(l.owner_id()),
          limit(limit_of_all),
          asked(l.release_requested()) {}
    void add(const Lease& handle) {
        handles.push_back(&handle);
        lease = &handle;
    }
    /// True: it was the last one.
    bool remove(const Lease& handle, Outcome how) {
        std::erase(handles, &handle);
        outcome = std::max(outcome, how);
        if (!handles.empty()) lease = handles.front();
        return handles.empty();
    }
    /// A call of its owner is under way, and may get one more handle of it.
    bool unsure() const { return asking != nullptr && *asking > 0; }

    const Lease* lease;  ///< one of its handles
    Process* process;
    std::size_t name;
    std::string owner;
    std::uint32_t limit;    ///< of its semaphore
    std::stop_token asked;  ///< to release it
    std::shared_ptr<Listener> listener = {};
    std::vector<const Lease*> handles = {};  ///< that are not released
    Outcome outcome = Outcome::done;         ///< the worst of those that are
    unsigned releasing = 0;                  ///< calls under way
    const unsigned* asking = nullptr;
    Term* term = nullptr;       ///< of an election
    mutable bool over = false;  ///< its lease was seen as no longer valid
};

struct Options {
    std::uint64_t seed = 1;
    bool tracing = false;
    /// Faults beyond the class: such runs have to show violations.
    bool unsafe = false;
    /// Many faults in every run, and threads that lose the processor often.
    bool rough = false;
    /// Of the kinds of faults only these; empty: all that the deployment survives.
    std::set<Fault::Kind> only;
    /// Of the list of faults these are left out.
    std::set<std::size_t> without;
    /// And these features.
    std::set<Feature> no;
    /// Where each step is counted; null: nowhere.
    std::atomic<std::uint64_t>* steps = nullptr;
};

struct Report {
    std::uint64_t steps = 0, grants = 0;
    std::uint64_t overlaps = 0;  ///< that the class admits
    Nanos time = 0;
    std::string violation;  ///< empty: none
    std::string trace;
    std::vector<std::string> faults;
};

class World;
class History;
class Succession;

/// The servers of a run, and what is known of them.
class Deployment {
public:
    struct Listening {
        std::string host;
        std::uint16_t port;
        Server* server;
    };
    virtual ~Deployment() = default;
    virtual std::string url(const World&) = 0;
    /// That of one client, where they are not alike; else empty.
    virtual std::string url_of_user(const World&, std::size_t) { return {}; }
    /// Its clients use several modes, if there are any.
    virtual void mix(Random&) {}
    /// A request that comes late may acquire, until its ttl.
    virtual bool acquires_late() const { return !fences(); }
    /// Where not all servers answer, what one of them still has of an earlier grant or attempt may
    /// seem to be held.
    virtual bool may_seem_held() const { return false; }
    /// All clients know what an operator does, and min_hold and lock_delay.
    virtual bool operates() const { return true; }
    virtual bool pauses() const { return true; }
    /// Its clients may have this feature.
    virtual bool plays(Feature) const { return true; }
    virtual bool has(Kind) const { return true; }
    virtual bool fences() const { return true; }
    /// Nobody passes one that has waited for a second, and does not fit beside it.
    virtual bool ages(const Name&, Mode) const { return true; }
    /// A semaphore may get another limit, which is refused while an earlier one is in use.
    virtual bool changes_limits() const { return false; }
    /// All machines agree on the time, but for a moment.
    virtual bool right_clocks() const { return false; }
    /// All clients are in one process.
    virtual bool one_machine() const { return false; }
    virtual std::vector<Listening> servers() { return {}; }
    /// What may go wrong: each of these is as likely.
    virtual std::vector<Fault::Kind> faults(bool unsafe) const = 0;
    virtual void begin(const Fault&) {}
    /// The servers that its client does not reach while it lasts; asked after begin(), and when it
    /// is over.
    virtual std::vector<std::size_t> beyond(const Fault&) const { return {}; }
    virtual void heal() {}
    /// So many request time-outs one try takes at most: a time-out that begins when the request is
    /// sent comes after one for the connection.
    virtual int time_outs() const { return 1; }
    /// A server is far from a client if a message takes so long there and back, at most: all that
    /// a client asks for in one time-out has to be answered.
    virtual Nanos farthest(Nanos request_timeout) const { return request_timeout * 4 / 5; }
    /// When all is healed, what is left behind is gone after so long.
    virtual Nanos rest() const { return 1500 * ms; }
    /// So long servers keep what was to last for this ttl.
    virtual Nanos lasts(Nanos ttl) const { return ttl; }
    /// In runs without faults a name that is free is granted so soon to one that waits: a few round
    /// trips after a release where it is notified; else it looks each second.
    virtual Nanos hand_off(bool notified) const { return notified ? 100 * ms : second + 200 * ms; }
    /// For so long after a fault a waiter may find no server that could keep a place for it.
    virtual Nanos recovery() const { return rest(); }
    /// What a killed client had is gone so long after its ttl.
    virtual Nanos mourning() const { return 3 * second; }
    /// What is wrong with this belief, in words, as far as a server can tell.
    virtual std::string contradicts(const Belief&, const Name&) { return {}; }
    /// What its servers remember of earlier holders (docs/guarantees.md).
    struct Memory {
        bool any = true;       ///< else previous_holder() is unknown
        bool claims = true;    ///< of a grant that was handed over, whether its holder came
        bool releases = true;  ///< for as long as the run
        bool readers = false;  ///< one that was released, or that waited, is one as well
    };
    virtual Memory memory() const { return {}; }
    /// After a break with `now` the holder still hears that it was broken.
    virtual bool tells_breaks() const { return true; }
    /// Servers may have forgotten what they had answered, in this run.
    virtual bool may_forget() const { return false; }
    /// And its class admits two holders just now.
    virtual bool may_overlap() const { return false; }
    /// What is wrong with a move that a client has just reported, in words.
    virtual std::string misled([[maybe_unused]] const std::string& event) { return {}; }
    /// What was wrong at a server by itself, in words.
    virtual std::string wrong() const { return {}; }
    /// Whether a server still has the part of a holder that has given it back.
    virtual bool keeps([[maybe_unused]] const std::string& owner, const Name&) { return false; }
    /// What is held, or in line, when nothing should be.
    virtual std::string left(const std::vector<Name>&, [[maybe_unused]] bool killed) { return {}; }
};

/// Null: there is none of this name.
std::unique_ptr<Deployment> make_deployment(const std::string& backend, Kernel&, const Options&);

class World {
public:
    World(const std::string& backend, Options);
    ~World();
    World(const World&) = delete;
    World& operator=(const World&) = delete;
    Report run();

    /// One owner of a Reentrant, as its client sees it.
    struct Owner {
        std::size_t name = 0;
        int number = 0;
        unsigned asking = 0;             ///< acquisitions under way
        unsigned leaving = 0;            ///< releases under way
        Nanos since = 0;                 ///< when the first of these was asked for
        std::shared_ptr<Belief> belief;  ///< while it has a handle
        Nanos held = -1;                 ///< when it last had one
        Nanos met = -1;                  ///< when it last asked while it was asking
        /// It has released all handles that it had; a call under way may get one more.
        std::shared_ptr<Belief> left;
    };
    /// One candidate of an election, which all threads of a client share.
    struct Candidate {
        explicit Candidate(Election e) : election(std::move(e)) {}
        Election election;
        unsigned busy = 0;              ///< campaigns and terms
        unsigned campaigns = 0;         ///< that have begun
        const Belief* leads = nullptr;  ///< from the end of its campaign to its first release
        std::optional<Leader> known;    ///< as observed last
    };
    struct User {
        std::size_t number = 0;
        Process process;
        std::vector<std::unique_ptr<Route>> routes;  ///< one for each of servers_
        std::unique_ptr<boost::asio::io_context> loop;
        std::optional<Client> client;
        std::vector<std::unique_ptr<Lock>> locks;
        std::vector<std::unique_ptr<Lock>> next_locks;  ///< with the limits after the changes
        std::vector<std::unique_ptr<Reentrant<int>>> reentrant;  ///< by name; null: not used so
        std::map<std::pair<std::size_t, int>, Owner> owners;     ///< by name and number
        std::vector<std::unique_ptr<Candidate>> candidates;      ///< by name; null: no election
        std::size_t at_work = 0;
        Nanos troubled_until = 0;  ///< by faults of its own
        bool killed = false;
        Thread* main = nullptr;
    };

    Kernel kernel;
    System system{kernel};
    Options options;
    std::vector<std::unique_ptr<User>> users;
    std::vector<Name> names;
    milliseconds ttl{}, request_timeout{};
    bool calm = false;

    void fail(const std::string& why);
    bool has(Feature f) const { return features_.at(static_cast<std::size_t>(f)); }
    void trace(std::string_view who, std::string_view what) { kernel.trace(who, what); }
    /// So much longer than its bound a call may take, for want of a processor.
    Nanos slack() const { return slack_; }
    /// An operator is just freeing this name.
    bool breaks_now(std::size_t name) const;
    bool may_overlap() const { return deployment_->may_overlap(); }

private:
    friend class Worker;
    friend class Listener;
    friend class Succession;
    void plan();
    /// What the locks ask for besides.
    void refine();
    void make_faults();
    void choose_features();
    void change_limits(Random&);
    void choose_machines();
    void begin(const Fault&);
    void end(const Fault&);
    void live(User&);
    /// Their locks do without what the deployment does not declare.
    void settle(const Capabilities&);
    void make_locks(User&);
    /// What else its client uses of a name.
    void make_more(User&, const Name&);
    void check();
    void check_owed();
    void check_move(const User&, const std::string& event);
    /// What holders were told of their ends; `all`: also of the last ones.
    void check_told(bool all);
    /// Nobody waits for long for what is free.
    void check_waiting();
    /// Without faults nobody waits for longer than a hand-off takes.
    void check_prompt();
    struct Waiting;
    bool is_hindered(const Waiting&) const;
    /// Something of this name has just ended: of an acquisition that was asked for then, which may
    /// have stood before those that came about as early or later; or of a grant (0), before all.
    void hinder(std::size_t name, Nanos since = 0);
    /// Who was granted, and when it had asked.
    void check_passed(const Lease&, std::size_t name, Nanos asked);
    void check_at_end();
    /// Steps until it is so; false: it never was, or something is wrong.
    template <class Condition>
    bool go_until(Nanos cap, Condition);

    Route* dial(const Process&, const std::string& host, std::uint16_t port);
    std::string inspect(User&);

    std::unique_ptr<Deployment> deployment_;
    std::vector<Deployment::Listening> servers_;
    std::string url_;
    std::vector<Fault> faults_;
    std::unique_ptr<History> history_;
    std::unique_ptr<Succession> succession_;
    std::vector<const Belief*> beliefs_;
    std::list<std::shared_ptr<Listener>> listeners_;
    std::map<std::string, Told> told_;      ///< by events, of losses: by owner
    std::vector<const Belief*> believers_;  ///< in check(): those whose leases are valid now
    /// A call that has not ended.
    struct Waiting {
        const User* user;
        std::size_t name;
        Mode mode;
        std::uint32_t permits;
        Nanos since, until;
        Nanos hindered = 0;  ///< until then something was in its way
    };
    std::list<Waiting> waiting_;
    /// Calls that hold or stand in line in a way that only they see, by name.
    std::vector<unsigned> unseen_;
    std::map<std::string, Term> terms_;  ///< by the value that was campaigned with
    std::array<bool, static_cast<std::size_t>(Feature::count_)> features_{};
    /// What was given back, and the server has perhaps not heard of.
    struct Owed {
        std::string owner;
        std::size_t name;
        const User* user;
        Nanos since;
    };
    std::deque<Owed> owed_;             ///< in the order of `since`
    Nanos troubled_until_ = 0;          ///< by the faults so far
    Nanos servers_troubled_until_ = 0;  ///< by those that are of no client
    std::vector<Nanos> lapses_;  ///< until then a name may be closed by itself: by min_hold, or for
                                 ///< leases that were lost
    std::vector<Nanos> in_use_;  ///< when a name was last held, or something of it was owed
    Nanos looked_ = 0;           ///< when that was last looked at
    Nanos prompt_looked_ = 0;    ///< and for those that could be granted
    std::vector<std::uint64_t> highest_, highest_exclusive_;  ///< tokens, by name
    std::uint64_t grants_ = 0;
    std::set<std::string> overlapping_;  ///< owners that held beside others, as the class admits
    std::string violation_;
    bool stopping_ = false, closing_ = false, killed_ = false;
    bool with_events_ = false, with_loop_ = false;
    bool notified_ = true;   ///< all waiters are
    bool operated_ = false;  ///< an operator breaks leases, and asks holders to release
    Nanos delay_ = 0;        ///< the longest lock_delay
    Nanos far_ = 0;          ///< the longest way to a server and back
    bool bounded_ = false;   ///< a lock has a max_hold
    unsigned workers_ = 1;
    Nanos slack_ = 0;
    Nanos last_second_ = 0;  ///< of the run's time, and the steps before it
    std::uint64_t last_steps_ = 0;
};

}  // namespace holdfast::sim
