#include "session.hpp"

#include "client_library.hpp"
#include "errors.hpp"
#include "nodes.hpp"

namespace holdfast::zookeeper {

Session::Session(std::shared_ptr<Shared> shared, milliseconds ttl, milliseconds lock_delay)
    : shared_(std::move(shared)),
      ttl_(ttl),
      lock_delay_(lock_delay),
      handle_(std::make_shared<Handle>(shared_, ttl_ + lock_delay_, *this)),
      heartbeat_(*this, *shared_, *handle_, lock_delay_),
      queues_(*this, *shared_, *handle_),
      own_(*this, *shared_, *handle_),
      last_used_(boot_clock::now()),
      ensemble_known_(shared_->options.hosts.size() < 2) {}

Session::~Session() {
    drop();
}

void Session::start() {
    handle_->start();
    heartbeat_.arm(boot_clock::now() + heartbeat_.interval());
}

bool Session::usable() const {
    if (over_ || retired_ || refused_) return false;
    return !heartbeat_.proved() || heartbeat_.well_proved(boot_clock::now());
}

bool Session::outlives_change(boot_clock::duration answer) const {
    if (!own_.any_held() || !heartbeat_.proved()) return true;
    // The connection, three writes of a new chain, and the renewal that believes them.
    const auto proof = 5 * answer + 2 * Validity::spacing(shared_->options.tick);
    return boot_clock::now() + proof < heartbeat_.surely_until();
}

error_code Session::why_silent() const {
    if (refused_) return refused_.why;
    const error_code trouble = handle_->trouble().why;
    return trouble ? trouble : make(Error::no_answer);
}

std::string Session::words_of(error_code why) const {
    if (why == refused_.why) return refused_.text();
    return why == handle_->trouble().why ? handle_->trouble().detail : why.message();
}

awaitable<spi::Failure> Session::ready(boot_clock::time_point deadline) {
    const auto self = shared_from_this();
    touch();
    if (!handle_->connected()) handle_->hurry();
    const auto is_ready = [this] { return handle_->connected() && ensemble_known_; };
    while (!over_ && !refused_ && !is_ready() && boot_clock::now() < deadline) {
        auto wait = state_gate_.wait(shared_->engine, deadline);
        co_await std::move(wait);
    }
    if (is_ready() && !refused_ && !over_) co_return spi::Failure();
    const spi::Failure& trouble = handle_->trouble();
    std::string words = refused_.detail.empty() ? trouble.detail : refused_.detail;
    if (refused_) co_return spi::Failure(refused_.why, std::move(words));
    if (over_) co_return spi::Failure(from_rc(ZSESSIONEXPIRED), std::move(words));
    co_return trouble ? trouble : spi::Failure(make(Error::no_answer), std::move(words));
}

// --- what the handle says
// -------------------------------------------------------------------------------

void Session::connected(bool first) {
    if (over_) return;
    disconnected_since_.reset();
    if (first) heartbeat_.created();
    const milliseconds length = heartbeat_.lease_time(), tick = shared_->options.tick;
    if (std::string words = too_short("session", length, tick); !words.empty()) {
        // The servers' maxSessionTimeout: nothing of this length could be believed for long.
        words += " The servers grant no more";
        if (lock_delay_ > milliseconds::zero())
            words += " beside a lock_delay of " + spi::format_duration(lock_delay_);
        words += ": see their maxSessionTimeout.";
        return refuse({make(Error::too_short), std::move(words)});
    }
    if (first && length > ttl_ && length / 2 > tick)
        shared_->events->warn("The servers grant no session shorter than " +
                              spi::format_duration(length) +
                              ", by default two of their ticks, so their tickTime may be longer "
                              "than tick_time=" +
                              spi::format_duration(tick) +
                              ". Exclusion depends on it: set tick_time to their tickTime.");
    // Before all else, so that no grant comes before the answer.
    if (!ensemble_known_) ask_for_ensemble();
    heartbeat_.connected();
    queues_.connected();
    own_.connected();
    shared_->observed.all_changed();
    state_gate_.open();
}

void Session::refuse(spi::Failure why) {
    refused_ = std::move(why);
    state_gate_.open();
}

void Session::ask_for_ensemble() {
    handle_->get("/zookeeper/config", false, [weak = weak_from_this()](Call& c) {
        const auto self = weak.lock();
        if (!self || unanswered(c.rc)) return;
        self->ensemble_known_ = true;
        self->state_gate_.open();
        // One line for each server, none where it stands alone. Unreadable: as configured.
        const auto one = c.text.find("server.");
        if (c.rc != ZOK || (one != c.text.npos && c.text.find("server.", one + 1) != c.text.npos))
            return;
        self->refuse({make(Error::no_ensemble),
                      "The server that answered, one of " + hosts_text(self->shared_->options) +
                          ", is in no ensemble, so the others would grant the same lock. Name only "
                          "that server, or make them one ensemble."});
    });
}

void Session::disconnected() {
    disconnected_since_ = boot_clock::now();
    heartbeat_.disconnected();
    queues_.disconnected();
    own_.disconnected();
    shared_->beats.open();
    for (const QueueNodePtr& p : own_.all())
        if (p->held()) shared_->events->at_risk(p->owner);
}

void Session::ended(int rc) {
    if (std::exchange(over_, true)) return;
    if (rc == ZAUTHFAILED) {
        refused_ = handle_->trouble() ? handle_->trouble() : spi::Failure(from_rc(ZAUTHFAILED));
    }
    heartbeat_.stop();
    fail_all(make(Error::session_over));
    shared_->observed.all_changed();
    state_gate_.open();
    shared_->beats.open();
}

void Session::fail_all(error_code why) {
    own_.end_all(why);
    queues_.clear();
}

void Session::changed(std::string_view path, bool deleted) {
    if (deleted) shared_->observed.changed(path);
    const auto slash = path.rfind('/');
    if (slash == path.npos || own_.parent_changed(std::string(path), deleted)) return;
    queues_.changed(std::string(path.substr(0, slash)), std::string(path.substr(slash + 1)),
                    deleted);
}

void Session::children_changed(std::string_view path) {
    shared_->observed.changed(path);
    queues_.children_changed(path);
}

void Session::give_up_waiting(boot_clock::time_point now) {
    // The servers have ended the session by now, or forgotten it: one that was restored from older
    // data does not even answer it. Waiters stand in line again, in a new session; what this
    // one may have left is deleted if it ever comes back.
    const auto away = now - *disconnected_since_;
    if (away <= handle_->timeout()) return;
    if (away > 2 * handle_->timeout() + std::chrono::seconds(5)) return ended(0);
    if (std::exchange(gave_up_, true)) return;
    retired_ = true;
    own_.give_up_waiting();
    state_gate_.open();
}

// --- with each heartbeat
// ---------------------------------------------------------------------------------

void Session::beat() {
    const auto now = boot_clock::now();
    own_.expire(now);
    if (handle_->connected()) {
        queues_.tidy();
        own_.repeat(now);
        heartbeat_.keep_up(now);
    }
    if (disconnected_since_ && heartbeat_.proved()) give_up_waiting(now);
    if (shared_->on_beat) shared_->on_beat();
    if (!over_) heartbeat_.arm_next(now);
}

// --- the end
// ----------------------------------------------------------------------------------------

awaitable<void> Session::close(boot_clock::time_point deadline) {
    const auto self = shared_from_this();
    over_ = true;
    heartbeat_.stop();
    auto closing = handle_->close(deadline);
    co_await std::move(closing);
    fail_all(make_error_code(errc::closed));
    state_gate_.open();
    shared_->beats.open();
}

void Session::drop() {
    over_ = true;
    heartbeat_.stop();
    handle_->drop();
}

}  // namespace holdfast::zookeeper
