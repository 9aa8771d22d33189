// A Redis server as clients see it: its protocol, its clock, its subscribers and its restarts. The
// commands, and the scripts run by Lua 5.1, are those of tests/models/redis.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "../models/redis/server.hpp"
#include "network.hpp"

namespace holdfast::sim {

class Redis : public Server {
public:
    Redis(Kernel&, std::string name);

    bool listens() const override { return up_; }
    void opened(const std::shared_ptr<Connection>&) override;
    void arrived(Connection&, std::string_view bytes) override;
    void closed(Connection&) override;

    // --- faults
    /// Down, then up again, with its data or without.
    void restart(Nanos down, bool empty = false);
    /// Everything is gone, and nobody can tell.
    void flush() { store_.keys.clear(); }
    void pause(Nanos until);
    void recover();
    /// What was written since the last call of keep() is gone: no promise survives it.
    void forget_writes() { store_ = kept_; }
    void keep() { kept_ = store_; }

    /// What is stored, as of now.
    const model::Store& store();
    bool up() const noexcept { return up_; }
    /// From now on it is a replica, and refuses writes, or a primary. Either tells its role; one
    /// that becomes a replica hangs up on its clients, as Sentinels have it do.
    void set_replica(bool);
    bool is_replica() const noexcept { return role_ == Role::replica; }
    /// What a primary had.
    void copy(const model::Store& from) { store_.keys = from.keys; }
    /// MIGRATE with REPLACE: the key is the other server's from now on, with what is left of its
    /// time.
    void move_key(const std::string& key, Redis& to);
    bool listens(const std::string& channel) const;
    /// Called after each command that was done.
    std::function<void(const std::vector<std::string>&, const std::string& reply,
                       const Process& client)>
        ran;
    /// When it began without data.
    Nanos emptied() const noexcept { return emptied_; }

    /// The client ("*": all) that it notifies of nothing: refused at once, or never answered.
    std::string deaf;
    bool refuses_it = false;

    Nanos fastest = 10 * us, slowest = 80 * us;  ///< for one command

protected:
    using Words = std::vector<std::string>;
    struct Session : std::enable_shared_from_this<Session> {
        std::shared_ptr<Connection> connection;
        std::string in;
        bool busy = false;
        bool asking = false;  ///< the last command was ASKING
        std::set<std::string> channels;
    };
    virtual std::string answer(Session&, const Words&);
    virtual model::Wire wire();
    void publish(const std::string& channel, const std::string& text);
    static std::string bulk(std::string_view);
    /// Its name, in capitals.
    static std::string command_of(const Words&);

    Kernel& kernel_;

private:
    void look_at(Session&);
    void serve(const std::shared_ptr<Session>&, const Words&);
    void run(Session&, const Words&);
    void go_on();
    void begin();
    std::string script(const Words&);
    void hang_up();
    void set_time();

    model::Store store_, kept_;
    std::map<std::string, std::string> scripts_;  ///< by their SHA1
    std::vector<std::shared_ptr<Session>> sessions_;
    std::vector<std::pair<std::shared_ptr<Session>, Words>> waiting_;  ///< until it goes on
    Nanos free_at_ = 0, emptied_ = -never;
    Nanos began_ = 0;  ///< by its clock
    std::string run_id_;
    enum class Role : std::uint8_t { untold, primary, replica } role_ = Role::untold;
    bool up_ = true;
};

}  // namespace holdfast::sim
