#include "node_connection.hpp"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>

#include "../resp/errors.hpp"
#include "votes.hpp"

namespace holdfast::redlock {
namespace {

constexpr milliseconds shortest_pause{50}, longest_pause{500};
/// More would keep other clients from a node for too long.
constexpr std::size_t most_in_a_call = 64;

}  // namespace

NodeConnection::NodeConnection(asio::any_io_executor e, std::shared_ptr<NodeSet> set, Node& node,
                               tls::Context* tls)
    : executor_(std::move(e)),
      set_(std::move(set)),
      node_(node),
      tls_(tls),
      silence_(executor_),
      chores_(executor_) {}

void NodeConnection::ask(Request r, bool patient) {
    const auto now = boot_clock::now();
    switch (state_) {
        case State::ready:
            node_.server->trust();
            if (gathering_ && r.verb != nullptr && r.verb->many)
                return gathered_.push_back(std::move(r));
            return post_request(std::move(r));
        case State::closed:
            return r.done(nullptr, make_error_code(errc::closed), false);
        case State::down:
            if (patient || now >= next_try_) {
                probing_ = !patient;
                start_open();
            }
            break;
        case State::fresh:
        case State::broken:
            probing_ = false;
            start_open();
            break;
        case State::opening:
            if (patient) probing_ = false;
            break;
        case State::proving:
            break;
    }
    const bool wait = !probing_ && (state_ == State::opening || state_ == State::proving);
    if (state_ == State::ready) return post_request(std::move(r));
    if (wait) return queued_.push_back(std::move(r));
    r.done(nullptr, node_.why(), false);
}

void NodeConnection::look() {
    if (state_ == State::ready) {
        // Its answer, or its silence, decides.
        if (!pending_.empty()) return;
        Request ping{Ask::of(nullptr, "PING")};
        ping.done = [self = shared_from_this()](const Reply* r, const error_code&, bool) {
            if (r != nullptr) self->node_.set_up();
        };
        return post_request(std::move(ping));
    }
    if (state_ == State::opening || state_ == State::proving || state_ == State::closed) return;
    if (state_ == State::down && boot_clock::now() < next_try_) return;
    probing_ = node_.down();
    start_open();
}

// --- opening
// ------------------------------------------------------------------------------------

void NodeConnection::start_open() {
    state_ = State::opening;
    opening_ = std::make_shared<resp::Link>(executor_, node_.server, tls_);
    auto task = open(opening_);
    asio::co_spawn(executor_, std::move(task), asio::detached);
}

asio::awaitable<void> NodeConnection::open(std::shared_ptr<resp::Link> link) {
    const auto self = shared_from_this();
    std::shared_ptr<resp::Pipeline> made;
    spi::Failure failed;
    const auto deadline = boot_clock::now() + set_->options.connecting;
    try {
        failed = co_await link->open(deadline);
        if (!failed) made = std::make_shared<resp::Pipeline>(link, self);
    } catch (const std::exception& e) {
        failed = {resp::make(resp::Error::refused), e.what()};
    }
    if (opening_ != link) co_return;
    if (failed)
        fail(failed, true);
    else
        opened(std::move(made));
}

void NodeConnection::opened(std::shared_ptr<resp::Pipeline> made) {
    opening_.reset();
    pipeline_ = std::move(made);
    pipeline_->start();
    // It may be connected to in time and still answer too slowly to be of use.
    if (node_.down())
        prove();
    else
        become_ready();
}

void NodeConnection::prove() {
    state_ = State::proving;
    Request ping{Ask::of(nullptr, "PING")};
    ping.done = [self = shared_from_this()](const Reply* r, const error_code&, bool) {
        if (r != nullptr && self->state_ == State::proving) self->become_ready();
    };
    post_request(std::move(ping));
}

void NodeConnection::become_ready() {
    state_ = State::ready;
    probing_ = false;
    pause_ = shortest_pause;
    const bool too_few = set_->up() < set_->quorum();
    node_.set_up();
    releases_.resume();
    send_pending();  // first of all: the next attempt must not meet this client's own leftovers
    gather();
    for (Request& r : std::exchange(queued_, {})) {
        if (r.wanted && !r.wanted())
            r.done(nullptr, resp::make(resp::Error::no_answer), false);
        else
            ask(std::move(r), false);
    }
    send();
    if (too_few && set_->up() >= set_->quorum()) set_->majority_back();
}

// --- requests
// -----------------------------------------------------------------------------------

void NodeConnection::post_request(Request r) {
    Call call;
    call.requests.push_back(std::move(r));
    post(std::move(call));
}

void NodeConnection::send() {
    gathering_ = false;
    flush();
}

void NodeConnection::flush() {
    auto all = std::exchange(gathered_, {});
    Call call;
    for (Request& r : all) {
        if (!call.requests.empty() &&
            (call.requests.front().verb != r.verb || call.requests.size() == most_in_a_call))
            post(std::exchange(call, {}));
        call.requests.push_back(std::move(r));
    }
    if (!call.requests.empty()) post(std::move(call));
}

void NodeConnection::post(Call call) {
    if (!pipeline_) {
        // One of a batch that is sent again, after another of it has closed the connection.
        for (Request& r : call.requests)
            r.done(nullptr, resp::make(resp::Error::closed), false);
        return;
    }
    const bool first = pending_.empty();
    bool placed = false;
    try {
        pending_.emplace_back();
        placed = true;
        Command c;
        write(c, call.requests, node_.server->clock, call.text);
        c.encode(pipeline_->out());
    } catch (const std::exception&) {
        // Out of memory. An entry without its request would take the next one's answer.
        if (placed) pending_.pop_back();
        for (Request& r : call.requests)
            r.done(nullptr, make_error_code(boost::system::errc::not_enough_memory), false);
        return;
    }
    pending_.back() = std::move(call);
    node_.server->requests.fetch_add(1, std::memory_order_relaxed);
    if (first) heard_ = boot_clock::now();
    try {
        pipeline_->send();
        if (!watching_) watch_silence();
    } catch (const std::exception&) {
        fail(resp::make(resp::Error::closed), false);
    }
}

bool NodeConnection::take(Reply& reply) {
    if (pending_.empty() || !pending_.front().fits(reply)) return false;
    Call call = std::move(pending_.front());
    pending_.pop_front();
    answer(std::move(call), reply);
    return true;
}

void NodeConnection::settled() {
    if (!std::exchange(demoted_, false) || !left_.due(boot_clock::now())) return;
    set_->left_replica(node_.index);
    fail(resp::make(resp::Error::read_only), false);
}

void NodeConnection::leave() {
    if (pipeline_) broke(resp::Error::closed);
}

void NodeConnection::broke(resp::Error why) {
    const bool foreign = why == resp::Error::protocol;
    fail({resp::make(why), foreign ? "not the answers of a Redis server" : ""}, foreign);
}

bool NodeConnection::Call::fits(const Reply& r) const noexcept {
    const bool one = requests.size() == 1 || r.is(Reply::Type::error);
    return one || (r.is(Reply::Type::array) && r.count == requests.size());
}

void NodeConnection::answer(Call call, const Reply& reply) {
    if (call.requests.front().verb != nullptr && resp::forgotten(reply) && !call.text) {
        call.text = true;
        return post(std::move(call));
    }
    const bool together = call.requests.size() > 1, error = reply.is(Reply::Type::error);
    // Nothing was done, as one of the names is not for this user; the others may be.
    const bool each = together && error && resp::of_one_key(resp::from_reply(reply.text));
    for (std::size_t i = 0; i < call.requests.size(); ++i) {
        if (each)
            post_request(std::move(call.requests[i]));
        else
            answer(std::move(call.requests[i]), together && !error ? reply.items()[i] : reply);
    }
}

void NodeConnection::answer(Request r, const Reply& reply) {
    if (reply.is(Reply::Type::error) &&
        resp::from_reply(reply.text) == resp::make(resp::Error::read_only))
        demoted_ = true;
    if (r.late(reply)) {
        // Our idea of its clock was wrong, or the request was long under way.
        node_.server->clock.sample(late_time(reply) * 1000, boot_clock::now());
        if (!std::exchange(r.repeated, true) && boot_clock::now() < r.deadline)
            return post_request(std::move(r));
    }
    r.done(&reply, {}, true);
}

void NodeConnection::watch_silence() {
    watching_ = true;
    silence_.expires_at(spi::net::steady(heard_ + set_->options.patience));
    silence_.async_wait([self = shared_from_this()](error_code ec) {
        self->watching_ = false;
        if (ec || self->pending_.empty()) return;
        const auto now = boot_clock::now();
        if (now >= self->heard_ + self->set_->options.patience) {
            // What has come meanwhile, while this thread was busy, must be read first.
            return asio::post(self->executor_, [self, heard = self->heard_] {
                if (self->pending_.empty()) return;
                if (self->heard_ != heard) return self->watching_ ? void() : self->watch_silence();
                self->fail(resp::make(resp::Error::no_answer), true);
            });
        }
        self->watch_silence();
    });
}

void NodeConnection::fail(const spi::Failure& failed, bool down) {
    if (state_ == State::closed) return;
    const auto self = shared_from_this();
    const auto now = boot_clock::now();
    const bool was_open = state_ == State::ready;
    node_.server->doubt();
    if (opening_) std::exchange(opening_, nullptr)->close();
    if (pipeline_) std::exchange(pipeline_, nullptr)->close();
    demoted_ = false;
    state_ = down || !was_open ? State::down : State::broken;
    if (state_ == State::down) {
        node_.set_down(failed);
        next_try_ = now + pause_;
        pause_ = std::min(pause_ * 2, longest_pause);
    }
    probing_ = false;
    releases_.suspend();
    for (Call& call : std::exchange(pending_, {}))
        for (Request& r : call.requests)
            r.done(nullptr, failed.why, true);
    for (std::vector<Request>* waiting : {&gathered_, &queued_})
        for (Request& r : std::exchange(*waiting, {}))
            r.done(nullptr, failed.why, false);
    arm_chores();
}

void NodeConnection::close() noexcept {
    if (state_ == State::closed) return;
    fail(errc::closed, true);
    state_ = State::closed;
    releases_.clear();
    error_code ignored;
    silence_.cancel(ignored);
    chores_.cancel(ignored);
}

// --- pending releases
// ----------------------------------------------------------------------------------------

void NodeConnection::owe(Ask release, boot_clock::time_point again, boot_clock::time_point until) {
    if (state_ == State::closed) return;
    releases_.add(std::move(release), again, until, state_ == State::ready);
    if (state_ == State::ready)
        send_pending();
    else
        look();
    arm_chores();
}

void NodeConnection::send_now() {
    if (releases_.empty() || (state_ != State::down && state_ != State::broken)) return;
    probing_ = node_.down();
    start_open();
}

bool NodeConnection::has_pending() const noexcept {
    if (state_ == State::down || state_ == State::closed) return false;
    // What is on its way counts, too: a node drops it when it cannot write an earlier answer to a
    // connection that is gone.
    return releases_.open() || !pending_.empty();
}

void NodeConnection::send_pending() {
    const bool ready = state_ == State::ready;
    if (ready) flush();  // nothing that is owed may go ahead of what it gives back
    const auto now = boot_clock::now();
    releases_.send_due(now, [&](const PendingRelease& d) {
        Request r{d.release};
        r.done = [self = shared_from_this(), value = d.value, sent = now](const Reply* reply,
                                                                          const error_code&, bool) {
            if (reply == nullptr) return;  // the connection has failed: it stays owed
            const bool refused = reply->is(Reply::Type::error);
            self->releases_.answered(value, sent, refused, boot_clock::now());
            self->arm_chores();
        };
        gathered_.push_back(std::move(r));
    });
    if (ready) flush();
}

void NodeConnection::arm_chores() {
    if (releases_.empty() || state_ == State::closed) return;
    auto due = releases_.due();
    if (state_ == State::down || state_ == State::broken) due = std::min(due, next_try_);
    due = std::max(due, boot_clock::now() + milliseconds(1));
    if (chores_armed_ && due >= chores_due_) return;
    chores_armed_ = true;
    chores_due_ = due;
    chores_.expires_at(spi::net::steady(due));
    chores_.async_wait([self = shared_from_this()](error_code ec) {
        if (ec || self->state_ == State::closed) return;
        self->chores_armed_ = false;
        self->send_pending();
        if (self->state_ != State::ready && !self->releases_.empty()) self->look();
        self->arm_chores();
    });
}

}  // namespace holdfast::redlock
