// Which fault acts when: arming, counting, healing and playing a script. It moves no bytes itself.
#include <algorithm>

#include "holdfast/lab/error.hpp"
#include "proxy_engine.hpp"

namespace holdfast::lab::detail {

using boost::system::error_code;

std::optional<std::uint64_t> ProxyEngine::left(const Cut& cut, Link& link,
                                               Direction direction) const {
    if (cut.fault.direction != direction) {
        return std::nullopt;
    }
    if (cut.fault.count == Count::overall) {
        return cut.left;
    }
    if (link.id <= cut.last_connection) {
        return std::nullopt;
    }
    return cut.fault.after - std::min(cut.fault.after, link.pipe(direction).forwarded);
}

std::size_t ProxyEngine::nearest_cut(Link& link, Direction direction) const {
    std::size_t nearest = no_cut;
    for (std::size_t i = 0; i < cuts_.size(); ++i) {
        const auto bytes = left(cuts_[i], link, direction);
        if (bytes && (nearest == no_cut || *bytes < *left(cuts_[nearest], link, direction))) {
            nearest = i;
        }
    }
    return nearest;
}

void ProxyEngine::fire_cut(std::size_t index, const LinkPtr& link) {
    Cut& cut = cuts_[index];
    fire(cut.serial);
    const auto ending = cut.fault.ending;
    cut.left = cut.fault.after;
    if (cut.fault.times > 0 && --cut.fault.times == 0) {
        cuts_.erase(cuts_.begin() + static_cast<std::ptrdiff_t>(index));
    }
    this->cut(link, ending);
}

ProxyEngine::Swallow* ProxyEngine::swallow_for(const Link& link, Direction direction) {
    auto& swallow = swallow_[index(direction)];
    const bool concerned = swallow && (!swallow->link || *swallow->link == link.id);
    return concerned ? &*swallow : nullptr;
}

void ProxyEngine::spend_swallow(Direction direction) {
    auto& swallow = swallow_[index(direction)];
    if (swallow->fault.times > 0 && --swallow->fault.times == 0) {
        swallow.reset();
        return;
    }
    swallow->link.reset();
    swallow->left = swallow->fault.after;
}

std::uint64_t ProxyEngine::stall_serial(Direction direction) const {
    return hole_ != 0 ? hole_ : stall_[index(direction)];
}

void ProxyEngine::held_back(std::uint64_t serial) {
    ++counters_.stalled;
    fire(serial);
}

void ProxyEngine::fire(std::uint64_t serial) {
    if (serial == installed_) {
        fired_ = true;
    }
}

std::size_t ProxyEngine::apply(const Fault& fault) {
    if (fault.kind == Fault::Kind::heal) {
        heal();
        return 0;
    }
    const bool one_way = fault.kind == Fault::Kind::cut || fault.kind == Fault::Kind::swallow;
    if (one_way && !fault.direction) {
        throw LabError("a cut or swallow needs a direction");
    }
    if (fault.kind == Fault::Kind::swallow && fault.cut_after == std::uint64_t{0}) {
        throw LabError("at least one byte must be swallowed before the cut");
    }
    const auto serial = ++installed_;
    fired_ = false;
    switch (fault.kind) {
        case Fault::Kind::delay:
            for (const auto direction : both_ways) {
                if (fault.direction.value_or(direction) == direction) {
                    const bool any = fault.time.count() > 0 || fault.jitter.count() > 0;
                    delay_[index(direction)] = {fault.time, fault.jitter, any ? serial : 0};
                }
            }
            break;
        case Fault::Kind::cut:
            cuts_.push_back({fault, serial, fault.after, counters_.connections_accepted});
            break;
        case Fault::Kind::swallow:
            swallow_[index(*fault.direction)] = Swallow{fault, serial, fault.after, std::nullopt};
            for (const auto& link : all_links()) {
                link->pipe(*fault.direction).swallowed = 0;
            }
            break;
        case Fault::Kind::stall:
            for (const auto direction : both_ways) {
                if (fault.direction.value_or(direction) == direction) {
                    stall_[index(direction)] = serial;
                }
            }
            break;
        case Fault::Kind::black_hole:
            hole_ = serial;
            break;
        case Fault::Kind::refuse: {
            error_code ignored;
            accept_again_.cancel();
            acceptor_.close(ignored);
            fired_ = true;
            break;
        }
        case Fault::Kind::cut_all: {
            const auto links = all_links();
            for (const auto& link : links) {
                cut(link, fault.ending);
            }
            fired_ = !links.empty();
            return links.size();
        }
        case Fault::Kind::heal:
            break;
    }
    return 0;
}

void ProxyEngine::heal() {
    delay_ = {};
    stall_ = {};
    hole_ = 0;
    cuts_.clear();
    swallow_ = {};
    for (const auto& link : all_links()) {
        if (link->to_server.swallowed > 0 || link->to_client.swallowed > 0) {
            cut(link, Ending::reset);
            continue;
        }
        for (const auto direction : both_ways) {
            Pipe& pipe = link->pipe(direction);
            pipe.held = false;
            pipe.timer_armed = false;
            pipe.timer.cancel();
            for (auto& piece : pipe.queue) {
                piece.due = Clock::time_point::min();
            }
        }
        connect(link);
        pump(link);
    }
    listen();
}

bool ProxyEngine::script_done() const {
    if (!script_failure_.empty()) {
        throw LabError("a script's step failed: " + script_failure_);
    }
    return script_.empty();
}

void ProxyEngine::run(const Script& script) {
    stop_script();
    script_ = script.steps;
    script_start_ = Clock::now();
    script_base_ = counters_.connections_accepted;
    std::stable_sort(script_.begin(), script_.end(), [](const Step& one, const Step& other) {
        return one.at && other.at && *one.at < *other.at;
    });
    play();
}

void ProxyEngine::stop_script() {
    script_.clear();
    script_failure_.clear();
    script_timer_.cancel();
}

// Plays every step that is due, and sets the timer for the next one.
void ProxyEngine::play() {
    const auto due = [this](const Step& step) {
        return step.at
                   ? script_start_ + *step.at <= Clock::now()
                   : counters_.connections_accepted - script_base_ >= step.connection.value_or(0);
    };
    try {
        for (auto step = std::find_if(script_.begin(), script_.end(), due); step != script_.end();
             step = std::find_if(script_.begin(), script_.end(), due)) {
            const auto fault = step->fault;
            script_.erase(step);
            apply(fault);
        }
    } catch (const LabError& error) {
        script_.clear();
        script_failure_ = error.what();
    }
    const auto next = std::find_if(script_.begin(), script_.end(),
                                   [](const Step& step) { return step.at.has_value(); });
    if (next != script_.end()) {
        script_timer_.expires_at(script_start_ + *next->at);
        script_timer_.async_wait([this](error_code error) {
            if (!error) {
                play();
            }
        });
    }
}

}  // namespace holdfast::lab::detail
