// The text form is kept in step with the value by one rule: to_string() writes only what
// parse_fault() reads, and leaves out what is a default.
#include "holdfast/lab/fault.hpp"

#include <fmt/format.h>

#include "holdfast/lab/error.hpp"
#include "words.hpp"

namespace holdfast::lab {
namespace {

constexpr std::uint64_t longest_ms = 24ULL * 3600 * 1000;

class Reader {
public:
    explicit Reader(std::string_view text) : text_(text), words_(detail::words_of(text)) {}

    [[nodiscard]] bool done() const { return at_ == words_.size(); }

    bool take(std::string_view word) {
        if (done() || words_[at_] != word) {
            return false;
        }
        ++at_;
        return true;
    }

    bool take_direction(std::optional<Direction>& direction) {
        if (take("to_server")) {
            direction = Direction::to_server;
        } else if (take("to_client")) {
            direction = Direction::to_client;
        } else {
            return false;
        }
        return true;
    }

    std::uint64_t number(const char* what) {
        const auto value = done() ? std::nullopt : detail::number_of(words_[at_]);
        if (!value) {
            fail(std::string(what) + " must be a whole number");
        }
        ++at_;
        return *value;
    }

    std::chrono::milliseconds milliseconds(const char* what) {
        const auto value = number(what);
        if (value > longest_ms) {
            fail(std::string(what) + " is more than a day");
        }
        return std::chrono::milliseconds(value);
    }

    [[nodiscard]] std::string word() const { return done() ? std::string() : words_[at_]; }

    [[noreturn]] void fail(const std::string& why) const {
        throw LabError(fmt::format("in the fault \"{}\": {}", text_, why));
    }

private:
    std::string_view text_;
    std::vector<std::string> words_;
    std::size_t at_ = 0;
};

void read_delay(Reader& reader, Fault& fault) {
    fault.kind = Fault::Kind::delay;
    bool timed = false;
    while (!reader.done()) {
        if (reader.take("jitter")) {
            fault.jitter = reader.milliseconds("the jitter");
        } else if (!reader.take_direction(fault.direction)) {
            fault.time = reader.milliseconds("the delay in milliseconds");
            timed = true;
        }
    }
    if (!timed) {
        reader.fail("how many milliseconds?");
    }
}

void read_cut(Reader& reader, Fault& fault) {
    if (reader.done()) {
        fault.kind = Fault::Kind::cut_all;
        return;
    }
    fault.kind = Fault::Kind::cut;
    if (!reader.take_direction(fault.direction)) {
        reader.fail("to_server or to_client?");
    }
    fault.after = reader.number("the bytes");
    while (!reader.done()) {
        if (reader.take("new")) {
            fault.count = Count::new_connections;
        } else if (reader.take("times")) {
            fault.times = static_cast<unsigned>(reader.number("the times"));
        } else {
            reader.fail("unexpected word " + reader.word());
        }
    }
}

void read_swallow(Reader& reader, Fault& fault) {
    fault.kind = Fault::Kind::swallow;
    fault.direction = Direction::to_client;
    reader.take_direction(fault.direction);
    while (!reader.done()) {
        if (reader.take("after")) {
            fault.after = reader.number("the bytes");
        } else if (reader.take("cut")) {
            fault.cut_after = reader.number("the bytes");
        } else if (reader.take("reset")) {
            fault.cut_after = reader.number("the bytes");
            fault.ending = Ending::reset;
        } else if (reader.take("times")) {
            fault.times = static_cast<unsigned>(reader.number("the times"));
        } else {
            reader.fail("unexpected word " + reader.word());
        }
    }
    if (fault.cut_after == std::uint64_t{0}) {
        reader.fail("at least one byte must be swallowed before the cut; see cut");
    }
}

std::string direction_text(const std::optional<Direction>& direction) {
    return direction ? " " + std::string(to_string(*direction)) : std::string();
}

std::string times_text(unsigned times) {
    return times == 1 ? std::string() : fmt::format(" times {}", times);
}

}  // namespace

std::string_view to_string(Direction direction) noexcept {
    return direction == Direction::to_server ? "to_server" : "to_client";
}

std::string to_string(const Fault& fault) {
    const std::string cut = fault.ending == Ending::close ? "cut" : "reset";
    switch (fault.kind) {
        case Fault::Kind::delay:
            return fmt::format("delay {}{}{}", fault.time.count(),
                               fault.jitter.count() == 0
                                   ? std::string()
                                   : fmt::format(" jitter {}", fault.jitter.count()),
                               direction_text(fault.direction));
        case Fault::Kind::cut:
            return cut + direction_text(fault.direction) + fmt::format(" {}", fault.after) +
                   (fault.count == Count::overall ? "" : " new") + times_text(fault.times);
        case Fault::Kind::swallow: {
            std::string text = "swallow" + direction_text(fault.direction);
            if (fault.after != 0) {
                text += fmt::format(" after {}", fault.after);
            }
            if (fault.cut_after) {
                text += fmt::format(" {} {}", cut, *fault.cut_after);
            }
            return text + times_text(fault.times);
        }
        case Fault::Kind::stall:
            return "stall" + direction_text(fault.direction);
        case Fault::Kind::black_hole:
            return "hole";
        case Fault::Kind::refuse:
            return "refuse";
        case Fault::Kind::cut_all:
            return cut;
        case Fault::Kind::heal:
            break;
    }
    return "heal";
}

Fault parse_fault(std::string_view words) {
    Reader reader(words);
    Fault fault;
    if (reader.take("delay")) {
        read_delay(reader, fault);
    } else if (reader.take("cut")) {
        read_cut(reader, fault);
    } else if (reader.take("reset")) {
        fault.ending = Ending::reset;
        read_cut(reader, fault);
    } else if (reader.take("swallow")) {
        read_swallow(reader, fault);
    } else if (reader.take("stall")) {
        fault.kind = Fault::Kind::stall;
        reader.take_direction(fault.direction);
    } else if (reader.take("hole")) {
        fault.kind = Fault::Kind::black_hole;
    } else if (reader.take("refuse")) {
        fault.kind = Fault::Kind::refuse;
    } else if (!reader.take("heal")) {
        reader.fail(
            "no such fault; known are delay, cut, reset, swallow, stall, hole, refuse, heal");
    }
    if (!reader.done()) {
        reader.fail("unexpected word " + reader.word());
    }
    return fault;
}

}  // namespace holdfast::lab
