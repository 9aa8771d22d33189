#include "handshake.hpp"

#include "errors.hpp"

namespace holdfast::resp {

spi::Failure Handshake::begin(Server& server, std::string& out) {
    const Target& o = server.target;
    Command c;
    std::string password;
    if (!o.password.empty()) {
        auto read = o.password.read();
        if (!read) return read.error();
        password = std::move(*read);
        c.add("AUTH");
        if (!o.user.empty()) c.add(o.user);
        c.add(password);
        c.encode(out);
        auth_ = true, ++left_;
    }
    if (o.database != 0) {
        c.clear();
        c.add("SELECT").add_number(o.database);
        c.encode(out);
        select_ = true, ++left_;
    }
    // A plain lock has no use for the server's clock, but the answer shows that we may speak.
    c.clear();
    c.add(o.asks_time ? "TIME" : "PING");
    c.encode(out);
    ++left_;
    if (server.greeting != nullptr) greeting_ = server.greeting->ask(o, out);
    left_ += greeting_;
    server.requests.fetch_add(left_, std::memory_order_relaxed);
    return {};
}

spi::Failure Handshake::take(const Reply& r, Server& server) {
    --left_;
    answered_ = true;
    if (left_ < greeting_) return server.greeting->answered(greeted_++, r);
    const bool was_auth = std::exchange(auth_, false);
    const bool was_select = !was_auth && std::exchange(select_, false);
    if (r.is(Reply::Type::error)) {
        const error_code ec = from_reply(r.text);
        if (was_auth) {
            // Whatever a server answers to AUTH may repeat the password: only what is known is
            // shown.
            const bool needless = r.text.find("without any password") != r.text.npos ||
                                  r.text.find("no password is set") != r.text.npos;
            return {ec == errc::unavailable ? ec : make(Error::denied),
                    r.text.starts_with("WRONGPASS") || ec == make(Error::denied)
                        ? "wrong user or password"
                    : needless ? "the server asks for no password, but the configuration has one"
                               : "AUTH was refused"};
        }
        if (was_select && ec == make(Error::refused_command))
            return {errc::bad_config,
                    "there is no database " + std::to_string(server.target.database)};
        if (r.text.starts_with("NOAUTH"))
            return {ec, "the server asks for a password, and the configuration has none"};
        // Asked first of all, so the role is not known yet.
        if (!was_select && ec == make(Error::no_command))
            return {ec, std::string(shown(r.text)) +
                            "; if this is a Sentinel, write redis+sentinel://HOST,HOST,HOST/NAME"};
        return {ec, std::string(shown(r.text))};
    }
    if (was_auth || was_select || !server.target.asks_time)
        return r.is(Reply::Type::status) ? error_code() : make(Error::protocol);
    if (!r.is(Reply::Type::array) || r.count != 2 || !r.elements[0].is_text() ||
        !r.elements[1].is_text())
        return make(Error::protocol);
    const std::int64_t seconds = number(r.elements[0].text), us = number(r.elements[1].text);
    if (seconds < 0 || seconds > 9'000'000'000 || us < 0 || us > 999'999)
        return make(Error::protocol);
    server.clock.sample(seconds * 1'000'000 + us, boot_clock::now());
    return {};
}

}  // namespace holdfast::resp
