#include "lane.hpp"

#include <new>

#include "errors.hpp"
#include "plain.hpp"

namespace holdfast::redis {
namespace {

error_code out_of_memory() noexcept {
    return make_error_code(boost::system::errc::not_enough_memory);
}

}  // namespace

AnyLane::AnyLane(std::shared_ptr<Shared> s) : shared_(std::move(s)), link_(shared_) {}

void AnyLane::give_up(error_code why, bool sent, spi::Attempt& a) noexcept {
    try {
        take_silence(why, sent, a, *shared_);
    } catch (const std::exception&) {
        a.outcome = spi::Attempt::Doubt{out_of_memory()};
    }
}

// --- blocking
// ---------------------------------------------------------------------------------------

template <class Item>
const Reply* AnyLane::exchange(const Item& item, error_code& why) {
    const auto now = round_ == 0 ? item.sent : boot_clock::now();
    return link_.exchange(command_, script_, now, item.deadline, why);
}

void AnyLane::attempt(spi::Attempt& a) noexcept {
    bool sent = false;
    try {
        const error_code ec = link_.ready(a.sent, a.deadline, a.detail);
        if (ec) return give_up(ec, false, a);
        ask(a);
        for (round_ = 0;; ++round_) {
            error_code why;
            sent = true;
            const Reply* r = exchange(a, why);
            if (r == nullptr) return give_up(why, true, a);
            if (take(*r, a)) return;
        }
    } catch (const std::exception&) {
        give_up(out_of_memory(), sent, a);
    }
}

void AnyLane::release(spi::Held& h) noexcept {
    h.released = ReleaseResult::unreachable;
    try {
        std::string detail;
        if (link_.ready(h.sent, h.deadline, detail)) return;
        ask(h);
        for (round_ = 0;; ++round_) {
            error_code why;
            const Reply* r = exchange(h, why);
            if (r == nullptr || take(*r, h)) return;
        }
    } catch (const std::exception&) {
        // Core releases it by the engine's connection.
    }
}

// --- in halves
// ---------------------------------------------------------------------------------------

bool AnyLane::open(boot_clock::time_point deadline) noexcept {
    try {
        std::string detail;
        return !link_.ready(boot_clock::now(), deadline, detail);
    } catch (const std::exception&) {
        return false;
    }
}

template <class Item>
bool AnyLane::send_first(const Item& item) noexcept {
    try {
        ask(item);
        round_ = 0;
        whole_ = false;
        return link_.post(command_, item.sent);
    } catch (const std::exception&) {
        return false;  // nothing that throws comes after sending
    }
}

template <class Item>
bool AnyLane::take_all(Item& item, error_code& why) {
    for (;;) {
        const Reply* r = link_.take(why);
        if (r == nullptr) return static_cast<bool>(why);
        if (script_ != nullptr && !whole_ && forgotten(*r)) {
            whole_ = true;
            with_text(command_, *script_);
        } else if (take(*r, item)) {
            return true;
        } else {
            whole_ = false;
            ++round_;
        }
        if (!link_.post(command_, boot_clock::now())) why = make(Error::closed);
        if (why) return true;
    }
}

bool AnyLane::finish(spi::Attempt& a) noexcept {
    error_code why;
    try {
        if (!take_all(a, why)) return false;
    } catch (const std::exception&) {
        why = out_of_memory();
    }
    if (why) give_up(why, true, a);
    return true;
}

bool AnyLane::finish(spi::Held& h) noexcept {
    error_code why;
    try {
        if (!take_all(h, why)) return false;
    } catch (const std::exception&) {
        why = out_of_memory();
    }
    if (why) h.released = ReleaseResult::unreachable;
    return true;
}

void AnyLane::abandon(spi::Attempt& a) noexcept {
    link_.shut();
    give_up(make(Error::no_answer), true, a);
}

void AnyLane::abandon(spi::Held& h) noexcept {
    link_.shut();
    h.released = ReleaseResult::unreachable;
}

// --- the default mode
// --------------------------------------------------------------------------------

void Lane::use(std::string_view name) {
    if (name == name_ && !name_.empty()) return;
    name_.clear();
    keys_.assign(shared_->options.prefix, name);
    name_ = name;
}

void Lane::ask(const spi::Attempt& a) {
    use(a.name);
    script_ = &Scripts::all().enter_one;
    redis::begin(command_, *script_, 5);
    add_keys(command_, keys_);
    command_.add({});
    command_.add(a.owner).add_number(a.ttl.count()).add("0");
    command_.add_number(shared_->clock.server_ms(a.deadline)).add({});
}

bool Lane::take(const Reply& r, spi::Attempt& a) {
    if (r.is(Reply::Type::error)) {
        take_error(r.text, a);
        return true;
    }
    if (take_enter(r.text, a, *shared_) == Entered::done || !first_reply()) return true;
    ask(a);
    return false;
}

void Lane::ask(const spi::Held& h) {
    use(h.name);
    script_ = &Scripts::all().leave_one;
    assign(texts_, h.token, *shared_, h.sent);
    redis::begin(command_, *script_, 5);
    add_keys(command_, keys_);
    const Place* p = find_place(h.place);
    const bool ghost = p != nullptr && p->ghost > shared_->clock.server_ms(h.sent);
    add_leave(command_, h.owner, letter_of(h.how), ghost ? p->ghost : 0, texts_);
}

bool Lane::take(const Reply& r, spi::Held& h) {
    if (r.is_text()) h.released = take_leave(r.text);
    return true;
}

// --- mode=plain
// --------------------------------------------------------------------------------------

const std::string& PlainLane::key(std::string_view name) {
    key_.assign(shared_->options.prefix);
    key_ += name;
    return key_;
}

void PlainLane::ask(const spi::Attempt& a) {
    script_ = nullptr;
    add_plain_set(command_, key(a.name), a);
}

bool PlainLane::take(const Reply& r, spi::Attempt& a) {
    take_plain_set(r, a);
    return true;
}

void PlainLane::ask(const spi::Held& h) {
    script_ = &Scripts::all().plain_release;
    redis::begin(command_, *script_, 1);
    command_.add(key(h.name)).add(h.owner);
}

bool PlainLane::take(const Reply& r, spi::Held& h) {
    if (!first_reply()) {
        h.released = take_plain_get(r);
        return true;
    }
    if (const auto told = take_plain_release(r)) {
        h.released = *told;
        return true;
    }
    script_ = nullptr;
    command_.clear();
    command_.add("GET").add(key_);
    return false;
}

}  // namespace holdfast::redis
