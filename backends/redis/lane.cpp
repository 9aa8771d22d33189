#include "lane.hpp"

#include <new>

#include "../resp/errors.hpp"
#include "confirmation.hpp"

namespace holdfast::redis {
namespace {

error_code out_of_memory() noexcept {
    return make_error_code(boost::system::errc::not_enough_memory);
}

}  // namespace

Lane::Lane(std::shared_ptr<Shared> s, std::shared_ptr<InFlight> a, std::shared_ptr<tls::Context> t)
    : shared_(std::move(s)), in_flight_(std::move(a)), link_(*shared_, std::move(t)) {}

const Keys& Lane::keys(std::string_view name) {
    if (name == name_ && !name_.empty()) return keys_;
    name_.clear();
    keys_.assign(shared_->options.prefix, name, !shared_->options.plain);
    name_ = name;
    return keys_;
}

void Lane::drive(Operation& op, boot_clock::time_point now) {
    Operation* const one = &op;
    bool sent = false;
    spi::Failure failed;
    try {
        failed = link_.open(now, op.deadline);
        while (!failed && op.wants() != nullptr) {
            const Script* const script = op.wants()->one;
            write(command_, {&one, 1}, {});
            const auto begun = sent ? boot_clock::now() : now;
            sent = true;
            const Reply* const r = link_.exchange(command_, script, begun, op.deadline);
            if (r != nullptr)
                op.answered(*r, &boot_clock::now);
            else
                failed = link_.why();
        }
    } catch (const std::exception&) {
        failed = out_of_memory();
    }
    // While Sentinels answer, another server takes over, and a caller that waits outlives it. In
    // doubt also where nothing was sent: a refusal by a server that is alive would be an answer.
    if (failed.why == errc::unavailable && shared_->options.sentinels &&
        shared_->confirmed(link_.move()) + shared_->options.ttl > boot_clock::now())
        failed.why = make(Error::no_primary), sent = true;
    if (failed) op.missing(failed, sent);
    if (!failed && shared_->options.confirm && op.granted()) count(op);
}

void Lane::count(Operation& granted) {
    const auto now = boot_clock::now();
    const auto since = shared_->confirmed(link_.move());
    // The engine goes on with this owner, and asks the Sentinels.
    if (!count_from(granted, since, now)) granted.unconfirmed(make(Error::unconfirmed));
}

void Lane::attempt(spi::Attempt& a) noexcept {
    a.outcome = spi::Attempt::Failed{out_of_memory()};
    try {
        Acquire op(*shared_, keys(a.name), a);
        spi::Attempt* const one = &a;
        const InFlight::Now asks(*in_flight_, {&one, 1});
        if (asks.allowed())
            drive(op, a.sent);
        else
            a.outcome = spi::Attempt::Failed{make_error_code(errc::closed)};
    } catch (const std::exception&) {
        // missing() writes the outcome before it needs memory.
    }
}

void Lane::release(spi::Held& h) noexcept {
    h.released = ReleaseResult::unreachable;
    try {
        Leave op(*shared_, keys(h.name), h, h.sent);
        drive(op, h.sent);
        op.tell(h);
    } catch (const std::exception&) {
        // Core releases it by the engine's connection.
    }
}

}  // namespace holdfast::redis
