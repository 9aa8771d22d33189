// Core's error category, and the text of diagnostics.
#include "holdfast/error.hpp"

#include "config/text.hpp"
#include "explain.hpp"

namespace holdfast {
namespace {

constexpr int max_hold = 100;  // a code of its own, with the condition errc::lost

const char* words(errc e) noexcept {
    switch (e) {
        case errc::contended:
            return "another client holds the lock";
        case errc::timed_out:
            return "another client still held the lock when the wait ended";
        case errc::cancelled:
            return "cancelled";
        case errc::unavailable:
            return "the lock server cannot be reached";
        case errc::no_quorum:
            return "fewer than a majority of nodes granted";
        case errc::in_doubt:
            return "the server did not answer; Holdfast is undoing the request";
        case errc::lost:
            return "the lease is lost";
        case errc::revoked:
            return "an operator broke the lock";
        case errc::not_held:
            return "not held";
        case errc::denied:
            return "authentication or permission denied";
        case errc::not_supported:
            return "not supported by this backend";
        case errc::kind_mismatch:
            return "the name holds something other than a lock at the server";
        case errc::bad_name:
            return "not a valid lock name";
        case errc::bad_config:
            return "wrong configuration";
        case errc::would_deadlock:
            return "a blocking call on the engine's own thread";
        case errc::closed:
            return "the client is closed";
        case errc::forked:
            return "the handle belongs to the parent process";
    }
    return "unknown error";
}

class Category final : public boost::system::error_category {
public:
    const char* name() const noexcept override { return "holdfast"; }
    std::string message(int value) const override {
        if (value == max_hold) return "held for longer than max_hold";
        return words(static_cast<errc>(value));
    }
    boost::system::error_condition default_error_condition(int value) const noexcept override {
        return {value == max_hold ? static_cast<int>(errc::lost) : value, *this};
    }
};

}  // namespace

const boost::system::error_category& category() noexcept {
    static const Category instance;
    return instance;
}

error_code make_error_code(errc e) noexcept {
    return {static_cast<int>(e), category()};
}

error_code max_hold_error() noexcept {
    return {max_hold, category()};
}

boost::system::error_condition make_error_condition(errc e) noexcept {
    return {static_cast<int>(e), category()};
}

void Diagnostics::add(std::string where, std::string what, std::string remedy) {
    entries.push_back({config::printable(std::move(where)), config::printable(std::move(what)),
                       config::printable(std::move(remedy))});
}

std::string Diagnostics::text() const {
    std::string out;
    for (const Entry& e : entries) {
        if (!out.empty()) out += '\n';
        if (!e.where.empty()) out += e.where + ": ";
        out += e.what;
        if (!e.remedy.empty()) out += "\n  " + e.remedy;
    }
    return out;
}

}  // namespace holdfast
