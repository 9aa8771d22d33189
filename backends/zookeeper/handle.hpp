// The C client's handle in the engine's loop: one session at the servers, over a series of
// connections.
#pragma once
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>

#include "call.hpp"
#include "shared.hpp"

struct _zhandle;

namespace holdfast::zookeeper {

/// "zk1:2181, zk2:2181", for people.
std::string hosts_text(const Options&);
/// A random part of `most`, so that clients do not reconnect all at once.
milliseconds some_of(milliseconds most);

/// Receives a handle's changes, inside the client library's callbacks.
class Listener {
public:
    virtual ~Listener() = default;
    virtual void connected(bool first) = 0;
    virtual void disconnected() = 0;
    /// The session has ended at the servers (ZSESSIONEXPIRED), or can never begin.
    virtual void ended(int rc) = 0;
    /// A watched node was deleted, or its data changed.
    virtual void changed(std::string_view path, bool deleted) = 0;
    virtual void children_changed(std::string_view path) = 0;
    /// Whether what is held outlives a change of the connection if each answer on the next one
    /// takes so long.
    virtual bool outlives_change(boot_clock::duration answer) const = 0;
};

/// Engine thread only. Sends requests while connected(), and answers them at once with
/// ZCONNECTIONLOSS otherwise. Resolves names itself, since the client library would block the
/// engine's thread.
class Handle : public std::enable_shared_from_this<Handle> {
public:
    Handle(std::shared_ptr<Shared>, milliseconds timeout, Listener&);
    ~Handle();
    Handle(const Handle&) = delete;
    Handle& operator=(const Handle&) = delete;

    /// Resolves and connects; the Listener receives the rest.
    void start();
    bool connected() const noexcept { return connected_ && !down_; }
    /// The server that it is connected to, for people; else empty.
    std::string server() const;
    boot_clock::time_point connected_since() const noexcept { return connected_since_; }
    /// A moment before the request that made the session, or the present connection, was sent.
    boot_clock::time_point connect_sent() const noexcept { return connect_sent_; }
    /// The negotiated time-out: the shortest that a server has granted since the session began.
    milliseconds timeout() const noexcept { return timeout_; }
    std::int64_t session() const noexcept;
    /// Why there is no connection; none: none was tried, or there is one.
    const spi::Failure& trouble() const noexcept { return trouble_; }

    using Then = std::function<void(Call&)>;
    enum class Kind : std::uint8_t { persistent, container, ephemeral, sequential };
    CallPtr create(const std::string& path, std::string_view data, Kind, Then = {});
    /// Versions are those of a node's data; -1: any.
    CallPtr remove(const std::string& path, Then = {}, int version = -1);
    CallPtr set(const std::string& path, std::string_view data, int version = -1, Then = {});
    /// A watch notifies once, and ends with the connection: after disconnected() nothing is
    /// watched.
    CallPtr get(const std::string& path, bool watch, Then = {});
    /// With a watch: Listener::children_changed once, as for get.
    CallPtr list(const std::string& path, Then = {}, bool watch = false);
    /// Whether it exists, with a watch: Listener::children_changed once, when it is created.
    CallPtr exists(const std::string& path, Then = {});
    /// Later answers of this server are at least as new as this call.
    CallPtr sync(const std::string& path, Then = {});
    /// In one step: creates `count` nodes with the same data. Call::children has their paths.
    CallPtr create_several(const std::string& path, std::string_view data, std::size_t count,
                           Then = {});
    /// In one step: deletes all of them, the first if it has that version; remove_and_set also sets
    /// `set` if it has that version.
    CallPtr remove_all(const std::vector<std::string>& paths, Then = {}, int version = -1);
    CallPtr remove_and_set(const std::vector<std::string>& paths, const std::string& set,
                           std::string data, int version, Then = {});
    /// In one step: deletes `node`, and deletes `other` or, with data, sets it, each if it has its
    /// version.
    CallPtr remove_with(const std::string& node, int node_version, const std::string& other,
                        std::optional<std::string> data, Then = {}, int version = -1);

    /// A caller waits for a connection: tries again now instead of after the pause.
    void hurry();
    /// Replaces the present connection, whose server does not answer.
    void cut() noexcept;
    /// Ends the session at the server, waiting only until `deadline`, and everything here.
    awaitable<void> close(boot_clock::time_point deadline);
    /// Ends everything here at once. The session at the server expires by itself.
    void drop() noexcept;

private:
    static void on_event(_zhandle*, int type, int state, const char* path, void* context);
    /// The host, and the address that the client library has of it; empty: no host means it.
    std::string known_as(std::string_view server) const;
    /// `aside`: while it connects to the addresses that it knows.
    void resolve(bool aside);
    void resolved(const std::vector<result<spi::HostNames::Addresses>>& answers, bool aside);
    void open(const std::string& servers);
    void turn(int events);
    struct Interest;
    /// Reads and writes what there is. `more`: it is not done yet.
    int process(int events, bool& more);
    /// Both leave the system's error in errno.
    int ask_interest(Interest&);
    /// The session is over at the servers.
    void end();
    void turn_soon();
    void gather(bool) noexcept;  ///< holds packets back, or sends them
    bool given_up() const noexcept;
    int purge();
    void failed(int system_error);
    void forget_watches() noexcept;
    void watch_descriptor(int fd, int interest);
    void drop_descriptor() noexcept;
    void wait_for(bool write);
    void arm_timer(std::chrono::nanoseconds);
    void session_event(int state);
    milliseconds connect_limit() const noexcept;
    boot_clock::duration answer_limit(boot_clock::time_point now) const;
    void answered(boot_clock::time_point sent) noexcept;
    void note_latency(boot_clock::duration) noexcept;
    using Watches = std::unordered_set<std::string>;
    /// `then`, after the node was noted as watched if the answer says so. `absent_too`: a node that
    /// does not exist is watched for its creation.
    Then noted(Watches Handle::*, std::string path, bool absent_too, Then);
    template <class Send>
    CallPtr send(Then, Send);
    CallPtr remove_several(const std::vector<std::string>& paths, int first_version,
                           const std::string& set, std::string data, int version, Then);

    const std::shared_ptr<Shared> shared_;
    const milliseconds asked_;
    Listener* listener_;
    _zhandle* zh_ = nullptr;
    boost::asio::posix::stream_descriptor descriptor_;
    boost::asio::steady_timer timer_;
    int fd_ = -1;
    std::uint64_t connection_ = 0;  ///< counts descriptors, to recognise late events
    bool reading_ = false, writing_ = false, turning_ = false, turn_posted_ = false;
    bool gathering_ = false;  ///< until the next turn
    bool connected_ = false, seen_ = false, over_ = false, closing_ = false, started_ = false;
    bool retry_pending_ = false, down_ = false, timer_armed_ = false;
    unsigned failures_ = 0;       ///< since the last connection
    unsigned silences_ = 0;       ///< of these: accepted, but not answered in time
    std::size_t unanswered_ = 0;  ///< requests on the present connection
    boot_clock::time_point silent_since_;
    /// How long an answer took lately, or was awaited in vain; quick answers let it shrink.
    boot_clock::duration latency_{};
    Watches watches_;        ///< nodes that the client library watches
    Watches child_watches_;  ///< nodes whose children it watches
    std::size_t servers_ = 1;
    std::string server_list_;
    std::vector<spi::HostNames::Addresses> addresses_;  // of each host, as last answered
    milliseconds timeout_;
    boot_clock::time_point connect_sent_, connected_since_, failed_at_;
    spi::Failure trouble_;
};

}  // namespace holdfast::zookeeper
