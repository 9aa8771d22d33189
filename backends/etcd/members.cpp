#include "members.hpp"

#include <algorithm>
#include <boost/scope_exit.hpp>
#include <utility>

#include "errors.hpp"
#include "holdfast/spi/net/endpoint.hpp"

namespace holdfast::etcd {
namespace {

constexpr std::size_t most_under_way = 32;
/// Grants are short; lines and operators' lists are long. Megabytes of an answer.
constexpr std::size_t longest(Members::Length l) {
    return l == Members::Length::list ? 8 : 1;
}

/// Whether the next member is asked, after this one has answered so or not at all.
bool leaves(const error_code& why) {
    constexpr Error all[] = {Error::no_answer,  Error::closed,    Error::unreachable,
                             Error::unresolved, Error::no_leader, Error::learner,
                             Error::tls,        Error::protocol,  Error::too_old,
                             Error::no_grpc,    Error::failed,    Error::other_cluster};
    return std::any_of(std::begin(all), std::end(all), [&](Error e) { return why == make(e); });
}

}  // namespace

struct Members::Turn {
    spi::net::Gate gate;
    bool given = false;
};

Members::Members(std::shared_ptr<Shared> s)
    : shared_(std::move(s)),
      tls_(tls::make_context(
          shared_->options.tls,
          [events = shared_->events](std::string text) { events->warn(std::move(text)); })),
      identity_(size()),
      compared_(size() < 2) {}
Members::~Members() {
    close();
}

void Members::close() noexcept {
    closed_ = true;
    for (const auto& weak : all_)
        if (const ConnectionPtr c = weak.lock()) c->close();
    for (const auto& t : waiting_)
        t->gate.open();
    authenticated_.open();
}

Members::ConnectionPtr Members::connection_to(std::size_t member) {
    std::erase_if(all_, [](const auto& weak) { return weak.expired(); });
    auto made = std::make_shared<Connection>(shared_, tls_.get(), member);
    all_.push_back(made);
    return made;
}

Members::ConnectionPtr Members::connection() {
    if (in_use_ && in_use_->member == at_ && in_use_->takes_calls()) return in_use_;
    if (in_use_) in_use_->retire();
    return in_use_ = connection_to(at_);
}

// A member that did not answer is asked again when the others have had their turn.
void Members::leave(const Connection& c) {
    if (c.member != at_) return;
    const Connection* const watched = watcher_ ? watcher_->connection() : nullptr;
    // It would go on to be silent. Of a single host that is true of the connection alone.
    const bool silent = size() > 1 || (watched == &c && c.retired());
    if (watched != nullptr && watched->member == c.member && silent) watcher_->end();
    if (size() == 1) return;
    at_ = (at_ + 1) % size();
    if (in_use_) in_use_->retire();
    in_use_.reset();
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

awaitable<bool> Members::turn(boot_clock::time_point deadline) {
    const auto mine = std::make_shared<Turn>();
    waiting_.push_back(mine);
    BOOST_SCOPE_EXIT_ALL(this, &mine) {
        std::erase(waiting_, mine);
    };
    // What is sent with little time left ends in doubt.
    const auto begun = boot_clock::now(), until = begun + (deadline - begun) / 2;
    while (!mine->given && !closed_ && boot_clock::now() < until) {
        auto wait = mine->gate.wait(shared_->engine, until);
        co_await std::move(wait);
    }
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

awaitable<Connection::Outcome> Members::ask(Connection& c, const Post& p,
                                            boot_clock::time_point deadline) {
    return c.ask({p.method, token_, p.request, longest(p.length)}, p.reply, deadline);
}

void Members::judge(const Connection& c, const Post& p, Connection::Outcome& out) {
    if (out.said) out.detail = shown(out.detail);
    if (out.why) return;
    const rpc::ResponseHeader* const header = p.header(p.reply);
    // What etcd 3.4 answers about alarms has none.
    if (header == nullptr && p.method != method::alarm) {
        out.why = make(Error::protocol);
        out.doubt = true;
    }
    if (header == nullptr) return;
    const Identity::Says says = identity_.hear(c.member, header->cluster_id());
    if (says == Identity::Says::anew) ++generation_;
    if (says == Identity::Says::other) {
        out.detail = spi::text_of(shared_->options.hosts[c.member]) +
                     " belongs to another cluster than the other hosts of the URL";
        out.why = make(Error::other_cluster);
    }
}

awaitable<Members::Answer> Members::post(Post p, boot_clock::time_point deadline) {
    return shared_->options.user.empty() && compared_ ? send(p, deadline)
                                                      : post_as_user(p, deadline);
}

awaitable<Members::Answer> Members::post_as_user(Post p, boot_clock::time_point deadline) {
    const auto self = shared_from_this();
    const bool as_user = !shared_->options.user.empty();
    for (bool again = false;; again = true) {
        if (as_user && token_.empty() && !no_users_) {
            auto asking = authenticate(deadline);
            Answer failed = co_await std::move(asking);
            if (failed) co_return failed;
        }
        if (!compared_) {
            auto comparing = compare_hosts(deadline);
            Answer failed = co_await std::move(comparing);
            if (failed) co_return failed;
        }
        const std::string used = token_;
        auto sending = send(p, deadline);
        Answer answer = co_await std::move(sending);
        // A token ends some minutes after its last use, with the member, and when users change. The
        // request was surely not executed.
        if (!as_user || again || answer.why != make(Error::token)) co_return answer;
        if (token_ == used) token_.clear();
        no_users_ = false;
    }
}

awaitable<spi::Failure> Members::compare_hosts(boot_clock::time_point deadline) {
    while (comparing_ && !closed_ && boot_clock::now() < deadline) {
        auto wait = comparison_.wait(shared_->engine, deadline);
        co_await std::move(wait);
    }
    if (compared_) co_return spi::Failure();
    if (comparing_) co_return make(Error::no_answer);
    comparing_ = true;
    BOOST_SCOPE_EXIT_ALL(this) {
        comparing_ = false;
        comparison_.open();
    };
    auto hearing = hear_hosts(deadline);
    spi::Failure failed = co_await std::move(hearing);
    compared_ = !failed;
    co_return failed;
}

awaitable<spi::Failure> Members::hear_hosts(boot_clock::time_point deadline) {
    const rpc::MemberListRequest nothing;
    rpc::MemberListResponse list;
    const Post p{method::member_list, nothing, list, header_of<rpc::MemberListResponse>,
                 Length::brief};
    auto listing = send(p, deadline);
    Answer listed = co_await std::move(listing);
    if (leaves(listed.why) || listed.why == errc::closed) co_return listed;
    // A user that may not read the list has to believe the configuration.
    const bool enough = listed.why || static_cast<std::size_t>(list.members_size()) >= size();
    for (std::size_t i = 0; i < size() && !enough; ++i) {
        if (identity_.heard(i)) continue;
        // Two names of one member, or another cluster: only it can tell.
        const auto now = boot_clock::now();
        const auto c = connection_to(i);
        auto asking = ask(*c, p, now + (deadline - now) / static_cast<long>(size() - i));
        Connection::Outcome out = co_await std::move(asking);
        judge(*c, p, out);
        c->close();
        if (out.why) {
            if (leaves(out.why) && out.why != make(Error::other_cluster))
                out.detail +=
                    "; more hosts are named than the cluster has members, so it has to say "
                    "that it is not of another one";
            co_return out;
        }
    }
    co_return spi::Failure();
}

awaitable<spi::Failure> Members::authenticate(boot_clock::time_point deadline) {
    while (authenticating_ && token_.empty() && !closed_ && boot_clock::now() < deadline) {
        auto wait = authenticated_.wait(shared_->engine, deadline);
        co_await std::move(wait);
    }
    if (!token_.empty() || no_users_) co_return spi::Failure();
    if (authenticating_) co_return make(Error::no_answer);
    const auto password = shared_->options.password.read();
    if (!password) co_return password.error();
    password_ = *password;
    rpc::AuthenticateRequest named;
    named.set_name(shared_->options.user);
    named.set_password(password_);
    rpc::AuthenticateResponse reply;
    authenticating_ = true;
    BOOST_SCOPE_EXIT_ALL(this) {
        authenticating_ = false;
        authenticated_.open();
    };
    auto sending = send(
        {method::authenticate, named, reply, header_of<rpc::AuthenticateResponse>, Length::brief},
        deadline);
    Answer answer = co_await std::move(sending);
    if (!answer.why) token_ = reply.token();
    if (answer.why == make(Error::no_users)) {
        no_users_ = true;
        shared_->events->warn(shared_->options.display +
                              ": authentication is not enabled: the user has no effect");
        co_return spi::Failure();
    }
    if (answer) co_return answer;
    // It goes into a header as it is.
    const bool proper = !token_.empty() && std::all_of(token_.begin(), token_.end(),
                                                       [](char x) { return x > ' ' && x <= '~'; });
    if (!proper) token_.clear();
    co_return proper ? error_code() : make(Error::protocol);
}

void Members::heard(boot_clock::duration took) noexcept {
    ++answered_;
    cut_ = 0;
    patience_ =
        std::max(std::chrono::duration_cast<milliseconds>(took * 2), patience_ - patience_ / 16);
}

awaitable<Members::Answer> Members::send(Post p, boot_clock::time_point deadline) {
    const auto self = shared_from_this();
    Answer answer;
    if (under_way_ < most_under_way) {
        ++under_way_;
    } else {
        const std::uint64_t answered = answered_;
        auto taking = turn(deadline);
        if (!co_await std::move(taking)) {
            answer.unsent = answered != answered_;
            answer.why = closed_ ? make_error_code(errc::closed) : make(Error::no_answer);
            co_return answer;
        }
    }
    BOOST_SCOPE_EXIT_ALL(this) {
        give_turn();
    };
    std::string foreign;  // of another cluster: why that was refused
    bool passed = false;  // a connection took it no more
    for (std::size_t tried = 0; tried < size();) {
        if (closed_) {
            answer.why = make_error_code(errc::closed);
            break;
        }
        const ConnectionPtr c = connection();
        const auto begun = boot_clock::now(), until = limit(*c, deadline);
        auto task = ask(*c, p, until);
        Connection::Outcome out = co_await std::move(task);
        judge(*c, p, out);
        const auto took = boot_clock::now() - begun;
        answer.why = out.why;
        answer.doubt = answer.doubt || out.doubt;
        if (!answer.why) {
            answer.detail.clear();  // of a member that failed before
            heard(took);
            break;
        }
        answer.detail = std::move(out.detail);
        if (out.unprocessed && !std::exchange(passed, true)) continue;
        if (out.why == make(Error::unreachable) && out.doubt && !answer.repeated) {
            // Its connection had ended while it was idle: most likely nothing was executed. It is
            // repeated only once.
            answer.repeated = true;
            continue;
        }
        if (out.fresh && until < deadline && begun + took >= until) ++cut_;
        if (answer.why == make(Error::other_cluster)) foreign = answer.detail;
        if (leaves(answer.why)) leave(*c);
        if (out.doubt || !leaves(answer.why)) break;
        ++tried;
    }
    // It is what somebody has to mend, whatever became of the others.
    if (!foreign.empty() && leaves(answer.why)) {
        answer.why = make(Error::other_cluster);
        answer.detail = foreign;
    }
    co_return answer;
}

awaitable<error_code> Members::follow(std::shared_ptr<Watcher> watcher, std::string_view method,
                                      const Message& request, boot_clock::time_point deadline) {
    const auto self = shared_from_this();
    if (closed_ || watcher->over()) co_return make_error_code(errc::closed);
    const auto c = connection();
    watcher_ = watcher;
    BOOST_SCOPE_EXIT_ALL(this) {
        watcher_.reset();
    };
    auto following =
        c->follow({method, token_, request, longest(Length::list)}, *watcher, limit(*c, deadline));
    const error_code why = co_await std::move(following);
    if (why) leave(*c);
    co_return why;
}

}  // namespace holdfast::etcd
