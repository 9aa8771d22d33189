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

Lane::Lane(std::shared_ptr<Shared> s) : shared_(std::move(s)), link_(shared_) {}

void Lane::use(std::string_view name) {
    if (name == name_ && !name_.empty()) return;
    name_.clear();
    keys_.assign(shared_->options.prefix, name);
    name_ = name;
}

void Lane::attempt(spi::Attempt& a) noexcept {
    bool sent = false;
    try {
        const error_code ec = link_.ready(a.sent, a.deadline, a.detail);
        if (ec) return take_silence(ec, false, a, *shared_);
        use(a.name);
        const Script& script = Scripts::all().enter_one;
        for (int round = 0;; ++round) {
            begin(command_, script, 5);
            add_keys(command_, keys_);
            command_.add({});
            command_.add(a.owner).add_number(a.ttl.count()).add("0");
            command_.add_number(shared_->clock.server_ms(a.deadline)).add({});
            error_code why;
            sent = true;
            const Reply* r = link_.exchange(command_, &script, a.sent, a.deadline, why);
            if (r == nullptr) return take_silence(why, true, a, *shared_);
            if (r->is(Reply::Type::error)) return take_error(r->text, a);
            if (take_enter(r->text, a, *shared_) == Entered::done || round > 0) return;
        }
    } catch (const std::exception&) {
        try {
            take_silence(out_of_memory(), sent, a, *shared_);
        } catch (const std::exception&) {
            a.outcome = spi::Attempt::Doubt{out_of_memory()};
        }
    }
}

void Lane::release(spi::Held& h) noexcept {
    h.released = ReleaseResult::unreachable;
    try {
        std::string detail;
        if (link_.ready(h.sent, h.deadline, detail)) return;
        use(h.name);
        const Script& script = Scripts::all().leave_one;
        assign(texts_, h.token, *shared_, h.sent);
        begin(command_, script, 5);
        add_keys(command_, keys_);
        const Place* p = find_place(h.place);
        const bool ghost = p != nullptr && p->ghost > shared_->clock.server_ms(h.sent);
        add_leave(command_, h.owner, letter_of(h.how), ghost ? p->ghost : 0, texts_);
        error_code why;
        const Reply* r = link_.exchange(command_, &script, h.sent, h.deadline, why);
        if (r != nullptr && r->is_text()) h.released = take_leave(r->text);
    } catch (const std::exception&) {
        // Core releases it by the engine's connection.
    }
}

PlainLane::PlainLane(std::shared_ptr<Shared> s) : shared_(std::move(s)), link_(shared_) {}

const std::string& PlainLane::key(std::string_view name) {
    key_.assign(shared_->options.prefix);
    key_ += name;
    return key_;
}

void PlainLane::attempt(spi::Attempt& a) noexcept {
    try {
        const error_code ec = link_.ready(a.sent, a.deadline, a.detail);
        if (ec) return take_silence(ec, false, a, *shared_);
        add_plain_set(command_, key(a.name), a);
        error_code why;
        const Reply* r = link_.exchange(command_, nullptr, a.sent, a.deadline, why);
        if (r == nullptr) return take_silence(why, true, a, *shared_);
        take_plain_set(*r, a);
    } catch (const std::exception&) {
        a.outcome = spi::Attempt::Doubt{out_of_memory()};
    }
}

void PlainLane::release(spi::Held& h) noexcept {
    h.released = ReleaseResult::unreachable;
    try {
        std::string detail;
        if (link_.ready(h.sent, h.deadline, detail)) return;
        const Script& script = Scripts::all().plain_release;
        begin(command_, script, 1);
        command_.add(key(h.name)).add(h.owner);
        error_code why;
        const Reply* r = link_.exchange(command_, &script, h.sent, h.deadline, why);
        if (r == nullptr) return;
        if (const auto told = take_plain_release(*r)) {
            h.released = *told;
            return;
        }
        command_.clear();
        command_.add("GET").add(key_);
        r = link_.exchange(command_, nullptr, boot_clock::now(), h.deadline, why);
        if (r != nullptr) h.released = take_plain_get(*r);
    } catch (const std::exception&) {
        // Core releases it by the engine's connection.
    }
}

}  // namespace holdfast::redis
