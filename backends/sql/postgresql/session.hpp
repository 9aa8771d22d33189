// A libpqxx connection from a libpq handle that we connected ourselves, since libpqxx can only
// connect in unbounded time. It has none of libpqxx 6's automatic reconnects, which would hide that
// the server has forgotten the session.
#pragma once
#include <libpq-fe.h>

#include <memory>
#include <pqxx/pqxx>

namespace holdfast::postgresql {

using PgHandle = std::unique_ptr<PGconn, decltype(&PQfinish)>;

#if PQXX_VERSION_MAJOR < 7

/// Gives a connected handle to libpqxx once, and nothing after that.
class Adopt final : public pqxx::connectionpolicy {
public:
    explicit Adopt(PgHandle h) : pqxx::connectionpolicy(std::string()), handle_(std::move(h)) {}
    handle do_startconnect(handle h) override { return h != nullptr ? h : handle_.release(); }
    handle do_completeconnect(handle h) override { return h; }

private:
    PgHandle handle_;
};

class Session final : public pqxx::connection_base {
public:
    explicit Session(PgHandle h)
        : pqxx::connection_base(policy_), raw_(h.get()), policy_(std::move(h)) {
        init();
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
        inhibit_reactivation(true);
#pragma GCC diagnostic pop
    }
    ~Session() {
        close();
    }
    PGconn* raw() const noexcept {
        return raw_;
    }
    bool usable() const noexcept {
        return is_open();
    }

private:
    PGconn* raw_;
    Adopt policy_;
};

#else

class Session final {
public:
    explicit Session(PgHandle h)
        : raw_(h.get()), connection_(pqxx::connection::seize_raw_connection(h.release())) {}
    PGconn* raw() const noexcept { return raw_; }
    bool usable() const noexcept { return connection_.is_open(); }
    operator pqxx::connection&() noexcept { return connection_; }
    int get_notifs() { return connection_.get_notifs(); }
    void prepare(const std::string& name, const std::string& text) {
        connection_.prepare(name, text);
    }

private:
    PGconn* raw_;
    pqxx::connection connection_;
};

#endif

}  // namespace holdfast::postgresql
