#include "backend.hpp"

#include "errors.hpp"

namespace holdfast::redis {

RedisBackend::RedisBackend(const spi::Settings& s, spi::Context c)
    : capabilities_(promises(s)),
      context_(c),
      shared_(std::make_shared<Shared>(s)),
      tls_(make_tls(shared_->options)),
      connection_(std::make_shared<Connection>(c.engine, shared_, tls_.get())) {
    Scripts::all();
}

error_code RedisBackend::check_name(std::string_view name) const noexcept {
    if (reserved(shared_->options.prefix, name)) return make_error_code(errc::bad_name);
    return {};
}

awaitable<RedisBackend::Answer> RedisBackend::run(Command& c, const Script* script,
                                                  boot_clock::time_point deadline,
                                                  std::string* detail) {
    Answer answer;
    answer.why = co_await connection_->ready(deadline, detail);
    if (answer.why) co_return answer;
    for (bool whole = false;; whole = true) {
        std::string bytes;
        c.encode(bytes);
        answer = co_await connection_->exchange(std::move(bytes), 1, deadline);
        if (answer.why) {
            if (detail->empty()) *detail = shared_->options.display + ": " + answer.why.message();
            co_return answer;
        }
        const Reply& r = answer.replies.front();
        if (whole || script == nullptr || !forgotten(r)) co_return answer;
        with_text(c, *script);
    }
}

awaitable<result<Reply>> RedisBackend::ask(Command& c, const Script* script,
                                           boot_clock::time_point deadline, std::string* detail) {
    Answer answer = co_await run(c, script, deadline, detail);
    if (answer.why) co_return answer.why;
    Reply& r = answer.replies.front();
    if (r.is(Reply::Type::error)) {
        *detail = shown(r.text);
        co_return from_reply(r.text);
    }
    co_return std::move(r);
}

awaitable<void> RedisBackend::close() {
    closed_ = true;
    connection_->close();
    co_return;
}

}  // namespace holdfast::redis
