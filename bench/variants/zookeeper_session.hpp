// A bare ZooKeeper session for the documents' recipes, driven by the caller of turn(): many of them
// on one thread. What is not driven sends no heartbeats, as a paused process.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "holdfast/clock.hpp"

struct _zhandle;

namespace holdfast::bench {

/// What the server answered.
struct ZooKeeperAnswer {
    int code = 0;  ///< ZOK, ZNONODE, ZNODEEXISTS, ...
    bool ok() const { return code == 0; }
    bool no_node() const;
    bool exists_already() const;
    bool disconnected() const;       ///< no answer came: the connection or the session is over
    std::string path;                ///< create: as the server named it
    std::vector<std::string> names;  ///< children
    long long czxid = 0, owner = 0;  ///< exists, get: of the node
    long long created_ms = 0;        ///< the same; by the clock of the server that led then
};

/// One thread at a time. Errors: SelfCheck.
class ZooKeeperSession {
public:
    using Answer = ZooKeeperAnswer;
    using Take = std::function<void(const Answer&)>;

    /// Connects, and waits for that. `servers`: "127.0.0.1:2181,...".
    ZooKeeperSession(const std::string& servers, milliseconds timeout);
    /// Closes the session, unless it was left or is over.
    ~ZooKeeperSession();
    ZooKeeperSession(const ZooKeeperSession&) = delete;
    ZooKeeperSession& operator=(const ZooKeeperSession&) = delete;

    enum class Kind : std::uint8_t { persistent, ephemeral, sequential };  ///< the last: ephemeral
    enum class Watch : bool { no, yes };
    void create(const std::string& path, Kind, Take);
    void remove(const std::string& path, Take);
    void exists(const std::string& path, Watch, Take);
    void get(const std::string& path, Watch, Take);  ///< a data watch, where there is a node
    void children(const std::string& path, Watch, Take);

    // The same, waiting for the answer.
    Answer create(const std::string& path, Kind);
    Answer remove(const std::string& path);
    Answer exists(const std::string& path, Watch = Watch::no);
    Answer get(const std::string& path, Watch = Watch::no);
    Answer children(const std::string& path, Watch = Watch::no);

    /// Called for each event of a watch with its path.
    std::function<void(const std::string& path)> on_event;
    /// Requests sent so far, without heartbeats.
    std::uint64_t requests() const { return requests_; }
    /// Of all of them together.
    static std::uint64_t requests(std::span<ZooKeeperSession* const>);
    long long id() const;

    /// Drops the connection without a word and is not driven any more, as a crash: the server ends
    /// the session when its time is over.
    void leave();
    bool left() const { return left_; }
    /// The server said that the session is over.
    bool expired() const;
    /// Takes what there is, waits at most so long for more.
    void turn(milliseconds wait);
    /// The same for all of them at once.
    static void turn(const std::vector<ZooKeeperSession*>&, milliseconds wait);
    /// Connected again, or expired, after a time without turns. Errors: neither within 10 s.
    void settle();

private:
    struct Library;
    struct Asked;
    Answer wait_for(const std::function<void(Take)>& ask);
    void start(int code);
    Asked* asked(Take);

    _zhandle* handle_ = nullptr;
    std::uint64_t requests_ = 0;
    bool left_ = false;
};

/// Turns them until the condition holds. Errors: SelfCheck after `cap`.
void turn_until(const std::vector<ZooKeeperSession*>&, const std::function<bool()>&,
                milliseconds cap, const std::string& what);

}  // namespace holdfast::bench
