#include "members.hpp"

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <utility>

#include "connection.hpp"
#include "errors.hpp"
#include "holdfast/spi/net/endpoint.hpp"
#include "messages.hpp"

namespace holdfast::etcd {
namespace {

constexpr std::size_t most_under_way = 32;
/// Grants are short; lines and operators' lists are long. Megabytes of an answer.
constexpr std::uint64_t longest(Members::Length l) {
    return l == Members::Length::list ? 8 : 1;
}

/// Whether the next member is asked, after this one has answered so or not at all.
bool leaves(const error_code& why) {
    constexpr Error all[] = {Error::no_answer,  Error::closed,       Error::unreachable,
                             Error::unresolved, Error::no_leader,    Error::learner,
                             Error::tls,        Error::protocol,     Error::too_old,
                             Error::failed,     Error::other_cluster};
    return std::any_of(std::begin(all), std::end(all), [&](Error e) { return why == make(e); });
}

}  // namespace

class Members::Stream {
public:
    explicit Stream(std::function<void(std::string_view)> p) : piece(std::move(p)) {}
    std::function<void(std::string_view)> piece;
    ConnectionPtr connection;
    bool ended = false;
};

std::shared_ptr<Members::Stream> Members::make_stream(std::function<void(std::string_view)> piece) {
    return std::make_shared<Stream>(std::move(piece));
}

void Members::end(Stream& s) noexcept {
    s.ended = true;
    if (s.connection) s.connection->close();
}

struct Members::Turn {
    spi::net::Gate gate;
    bool given = false;
};

Members::Members(std::shared_ptr<Shared> s)
    : shared_(std::move(s)),
      tls_(tls::make_context(shared_->options.tls)),
      identity_(size()),
      compared_(size() < 2) {}
Members::~Members() = default;

void Members::close() noexcept {
    closed_ = true;
    for (const ConnectionPtr& c : all_)
        c->close();
    for (const auto& t : waiting_)
        t->gate.open();
    authenticated_.open();
}

Members::ConnectionPtr Members::connection_to(std::size_t member) {
    return all_.emplace_back(std::make_shared<Connection>(shared_, tls_.get(), member));
}

// A member that did not answer is asked again when the others have had their turn.
void Members::leave(std::size_t member) {
    if (member != at_) return;
    at_ = (at_ + 1) % size();
    drop_idle();
    // It would go on to be silent.
    for (const ConnectionPtr& c : all_)
        if (c->watches && c->member == member && size() > 1) c->close();
}

std::string Members::shown(const std::string& words) const {
    for (const std::string* secret : {&token_, &password_})
        if (!secret->empty() && words.find(*secret) != words.npos)
            return "the server's words repeat a secret, so they are not shown";
    return words.substr(0, 200);
}

boot_clock::time_point Members::limit(const Connection& c, boot_clock::time_point deadline) const {
    const auto now = boot_clock::now();
    if (c.used || now >= deadline) return deadline;
    const auto shares = static_cast<int>(size() - std::min(cut_, size() - 1));
    const auto share = (deadline - now) / shares;
    return std::min(deadline, now + std::max<boot_clock::duration>(share, patience_));
}

void Members::drop_idle() noexcept {
    for (const ConnectionPtr& c : idle_) {
        c->close();
        std::erase(all_, c);
    }
    idle_.clear();
}

awaitable<bool> Members::turn(boot_clock::time_point deadline) {
    if (under_way_ < most_under_way) {
        ++under_way_;
        co_return true;
    }
    const auto mine = std::make_shared<Turn>();
    waiting_.push_back(mine);
    while (!mine->given && !closed_ && boot_clock::now() < deadline) {
        auto wait = mine->gate.wait(shared_->engine, deadline);
        co_await std::move(wait);
    }
    if (!mine->given) std::erase(waiting_, mine);
    co_return mine->given;
}

void Members::give_turn() {
    if (waiting_.empty()) {
        --under_way_;
        return;
    }
    const auto next = std::move(waiting_.front());
    waiting_.pop_front();
    next->given = true;
    next->gate.open();
}

awaitable<error_code> Members::exchange(ConnectionPtr c, const std::string& path,
                                        const std::string& body, Length length,
                                        boot_clock::time_point deadline, Answer& answer,
                                        std::string* detail) {
    Connection::Response message;
    const std::string request = c->request(path, body, token_);
    auto asking = c->ask(request, longest(length), deadline, message, answer.doubt, detail);
    error_code why = co_await std::move(asking);
    if (why) co_return why;
    std::string words;
    why = read_answer(message.result_int(), message.body(), answer.body, words);
    // What etcd 3.4 answers about alarms has no header.
    if (why && path == "maintenance/alarm" &&
        (message.body().starts_with("{}") || array(answer.body, "alarms") != nullptr))
        why = {};
    if (!words.empty()) *detail = shown(words);
    if (!why) {
        const Identity::Says says = identity_.hear(c->member, cluster_of(answer.body));
        if (says == Identity::Says::anew) ++generation_;
        if (says == Identity::Says::other) {
            *detail = spi::text_of(shared_->options.hosts[c->member]) +
                      " belongs to another cluster than the other hosts of the URL";
            why = make(Error::other_cluster);
        }
    }
    if (why && !nothing_done(why)) answer.doubt = true;
    co_return why;
}

awaitable<Members::Answer> Members::post(std::string path, std::string body,
                                         boot_clock::time_point deadline, std::string* detail,
                                         Length length) {
    const auto self = shared_from_this();
    const bool as_user = !shared_->options.user.empty();
    for (bool again = false;; again = true) {
        if (as_user && token_.empty() && !no_users_) {
            auto asking = authenticate(deadline, detail);
            const error_code why = co_await std::move(asking);
            if (why) co_return Answer{why};
        }
        if (!compared_) {
            auto comparing = compare_hosts(deadline, detail);
            const error_code why = co_await std::move(comparing);
            if (why) co_return Answer{why};
        }
        const std::string used = token_;
        auto sending = send(path, body, length, deadline, detail);
        Answer answer = co_await std::move(sending);
        // A token ends some minutes after its last use, with the member, and when users change. The
        // request was surely not executed.
        if (!as_user || again || answer.why != make(Error::token)) co_return answer;
        if (token_ == used) token_.clear();
        no_users_ = false;
    }
}

awaitable<error_code> Members::compare_hosts(boot_clock::time_point deadline, std::string* detail) {
    while (comparing_ && !closed_ && boot_clock::now() < deadline) {
        auto wait = comparison_.wait(shared_->engine, deadline);
        co_await std::move(wait);
    }
    if (compared_) co_return error_code();
    if (comparing_) co_return make(Error::no_answer);
    comparing_ = true;
    auto hearing = hear_hosts(deadline, detail);
    const error_code why = co_await std::move(hearing);
    comparing_ = false;
    compared_ = !why;
    comparison_.open();
    co_return why;
}

awaitable<error_code> Members::hear_hosts(boot_clock::time_point deadline, std::string* detail) {
    const std::string path = "cluster/member/list", body = "{}";
    auto listing = send(path, body, Length::brief, deadline, detail);
    const Answer list = co_await std::move(listing);
    if (leaves(list.why) || list.why == errc::closed) co_return list.why;
    const auto* members = array(list.body, "members");
    // Who may not read the list has to believe the configuration.
    const bool enough = members == nullptr || members->size() >= size();
    for (std::size_t i = 0; i < size() && !enough; ++i) {
        if (identity_.heard(i)) continue;
        // Two names of one member, or another cluster: only it can tell.
        const auto now = boot_clock::now();
        const auto c = connection_to(i);
        Answer answer;
        auto asking =
            exchange(c, path, body, Length::brief,
                     now + (deadline - now) / static_cast<long>(size() - i), answer, detail);
        const error_code why = co_await std::move(asking);
        c->close();
        std::erase(all_, c);
        if (why) {
            if (leaves(why) && why != make(Error::other_cluster))
                *detail +=
                    "; more hosts are named than the cluster has members, so it has to say "
                    "that it is not of another one";
            co_return why;
        }
    }
    co_return error_code();
}

awaitable<error_code> Members::authenticate(boot_clock::time_point deadline, std::string* detail) {
    while (authenticating_ && token_.empty() && !closed_ && boot_clock::now() < deadline) {
        auto wait = authenticated_.wait(shared_->engine, deadline);
        co_await std::move(wait);
    }
    if (!token_.empty() || no_users_) co_return error_code();
    if (authenticating_) co_return make(Error::no_answer);
    const auto password = shared_->options.password.read();
    if (!password) {
        *detail = password.error().detail;
        co_return password.error().why;
    }
    boost::json::object named;
    named["name"] = shared_->options.user;
    named["password"] = password_ = *password;
    authenticating_ = true;
    auto sending =
        send("auth/authenticate", boost::json::serialize(named), Length::brief, deadline, detail);
    const Answer answer = co_await std::move(sending);
    authenticating_ = false;
    if (!answer.why) token_ = text(answer.body, "token");
    authenticated_.open();
    if (answer.why == make(Error::no_users)) {
        no_users_ = true;
        shared_->events->warn(shared_->options.display +
                              ": authentication is not enabled: the user has no effect");
        co_return error_code();
    }
    if (answer.why) co_return answer.why;
    // It goes into a header as it is.
    const bool proper = !token_.empty() && std::all_of(token_.begin(), token_.end(),
                                                       [](char x) { return x > ' ' && x <= '~'; });
    if (!proper) token_.clear();
    co_return proper ? error_code() : make(Error::protocol);
}

awaitable<Members::Answer> Members::send(std::string path, std::string body, Length length,
                                         boot_clock::time_point deadline, std::string* detail) {
    const auto self = shared_from_this();
    Answer answer;
    auto taking = turn(deadline);
    if (!co_await std::move(taking)) {
        answer.why = closed_ ? make_error_code(errc::closed) : make(Error::no_answer);
        co_return answer;
    }
    std::string foreign;  // of another cluster: why that was refused
    for (std::size_t tried = 0; tried < size();) {
        if (closed_) {
            answer.why = make_error_code(errc::closed);
            break;
        }
        const ConnectionPtr c = idle_.empty() ? connection_to(at_) : idle_.back();
        std::erase(idle_, c);
        const bool fresh = !c->used;
        const auto begun = boot_clock::now(), until = limit(*c, deadline);
        const bool before = std::exchange(answer.doubt, false);
        auto task = exchange(c, path, body, length, until, answer, detail);
        answer.why = co_await std::move(task);
        const auto took = boot_clock::now() - begun;
        const bool doubt = std::exchange(answer.doubt, before || answer.doubt);
        if (c->is_open() && c->member == at_ && !closed_) {
            idle_.push_back(c);
        } else {
            c->close();
            std::erase(all_, c);
        }
        if (!answer.why) {
            cut_ = 0;
            patience_ = std::max(std::chrono::duration_cast<milliseconds>(took * 2),
                                 patience_ - patience_ / 16);
            break;
        }
        if (answer.why == make(Error::unreachable) && doubt && !answer.repeated) {
            // Its connection had ended while it was idle: most likely nothing was executed. The
            // other idle ones will have ended with it, and it is repeated only once.
            answer.repeated = true;
            drop_idle();
            continue;
        }
        if (fresh && until < deadline && begun + took >= until) ++cut_;
        if (answer.why == make(Error::other_cluster)) foreign = *detail;
        if (leaves(answer.why)) leave(c->member);
        if (doubt || !leaves(answer.why)) break;
        ++tried;
    }
    // It is what somebody has to mend, whatever became of the others.
    if (!foreign.empty() && leaves(answer.why)) {
        answer.why = make(Error::other_cluster);
        *detail = foreign;
    }
    give_turn();
    co_return answer;
}

awaitable<error_code> Members::follow(std::shared_ptr<Stream> stream, std::string path,
                                      std::string body, boot_clock::time_point deadline) {
    const auto self = shared_from_this();
    if (closed_ || stream->ended) co_return make_error_code(errc::closed);
    const auto c = connection_to(at_);
    c->watches = true;
    stream->connection = c;
    const std::string request = c->request(path, body, token_);
    auto following =
        c->follow(request, deadline, [stream](std::string_view bytes) { stream->piece(bytes); });
    const error_code why = co_await std::move(following);
    std::erase(all_, c);
    stream->connection.reset();
    if (why) leave(c->member);
    co_return why;
}

}  // namespace holdfast::etcd
