#include "cluster.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace holdfast::sim {
namespace {

using Command = std::vector<std::string>;

constexpr const char* cluster_port = "6379";

/// Empty: whoever is asked does it by itself.
Command keys_of(const Command& words) {
    static const std::set<std::string> without{"PING", "INFO", "SUBSCRIBE", "UNSUBSCRIBE",
                                               "CLIENT"};
    const std::string& name = words.front();
    if (without.contains(name)) return {};
    if (name.starts_with("EVAL")) {
        const auto first = words.begin() + 3;
        return {first, first + static_cast<std::ptrdiff_t>(std::stoul(words.at(2)))};
    }
    return model::keys_of(words);
}

}  // namespace

Slot slot_of(std::string_view key) {
    if (const auto open = key.find('{'); open != key.npos) {
        const auto close = key.find('}', open);
        if (close != key.npos && close > open + 1) key = key.substr(open + 1, close - open - 1);
    }
    // CRC16 as of XMODEM, one bit after another.
    unsigned crc = 0;
    for (const char c : key) {
        crc ^= static_cast<unsigned>(static_cast<unsigned char>(c)) << 8U;
        for (int bit = 0; bit < 8; ++bit)
            crc = (crc & 0x8000U) != 0 ? (crc << 1U) ^ 0x1021U : crc << 1U;
    }
    return static_cast<Slot>(crc % slot_count);
}

ClusterServer::ClusterServer(Kernel& k, std::size_t number, std::size_t primaries, std::size_t all)
    : Redis(k, "redis" + std::to_string(number)), number_(number) {
    for (std::size_t i = 0; i < all; ++i) {
        follows_.push_back(i % primaries);
        epochs_.push_back(i % primaries + 1);
    }
    for (std::size_t i = 0; i < primaries; ++i)
        std::fill(owners_.begin() + static_cast<std::ptrdiff_t>(slot_count * i / primaries),
                  owners_.begin() + static_cast<std::ptrdiff_t>(slot_count * (i + 1) / primaries),
                  static_cast<std::uint8_t>(i));
}

bool ClusterServer::serves() const {
    const Nanos now = kernel_.now();
    return up() && now >= machine.frozen_until && now >= fails_until_;
}

std::vector<std::string> ClusterServer::keys_in(Slot slot) {
    std::vector<std::string> all;
    for (const auto& [key, value] : store().keys)
        if (slot_of(key) == slot) all.push_back(key);
    return all;
}

// --- what it hears

bool ClusterServer::hear(const ClusterServer& of) {
    const std::size_t who = of.number_;
    epochs_[who] = std::max(epochs_[who], of.epochs_[who]);
    follows_[who] = of.follows_[who];
    bool lost = false;
    for (std::size_t s = 0; s < slot_count; ++s) {
        if (of.owners_[s] != who || owners_[s] == who) continue;
        const auto slot = static_cast<Slot>(s);
        // What is on its way here is settled by whoever moves it.
        if (epochs_[owners_[s]] >= epochs_[who] || coming_.contains(slot)) continue;
        lost = lost || owners_[s] == number_;
        leaving_.erase(slot);
        owners_[s] = static_cast<std::uint8_t>(who);
    }
    if (!lost || std::find(owners_.begin(), owners_.end(), number_) != owners_.end()) return false;
    follows_[number_] = who;
    return true;
}

void ClusterServer::take_over(std::uint64_t of_epoch) {
    const std::size_t former = std::exchange(follows_[number_], number_);
    epochs_[number_] = of_epoch;
    std::replace(owners_.begin(), owners_.end(), static_cast<std::uint8_t>(former),
                 static_cast<std::uint8_t>(number_));
}

void ClusterServer::own(Slot slot, std::uint64_t of_epoch) {
    coming_.erase(slot);
    owners_.at(slot) = static_cast<std::uint8_t>(number_);
    epochs_[number_] = of_epoch;
}

// --- what it answers

std::string ClusterServer::ask(const std::vector<std::string>& words, bool asking) {
    (void)store();  // as of now
    Session alone;
    alone.asking = asking;
    return answer(alone, words);
}

std::string ClusterServer::answer(Session& s, const Words& words) {
    const std::string name = command_of(words);
    asking_ = std::exchange(s.asking, name == "ASKING");
    if (name == "ASKING") return "+OK\r\n";
    if (name == "HELLO")
        return "*8\r\n" + bulk("server") + bulk("redis") + bulk("version") + bulk("7.0.15") +
               bulk("mode") + bulk("cluster") + bulk("role") + bulk(leads() ? "master" : "replica");
    if (name == "CLUSTER") return about(words);
    std::string refused = refusal(words);
    return refused.empty() ? Redis::answer(s, words) : refused;
}

model::Wire ClusterServer::wire() {
    model::Wire to = Redis::wire();
    // A command of a script is judged by itself while a slot is on its way.
    if (!leaving_.empty() || !coming_.empty())
        to.has_keys = [this](const Words& words) { return refusal(words).empty(); };
    return to;
}

std::string ClusterServer::refusal(const Words& words) {
    const Command keys = keys_of(words);
    if (keys.empty()) return {};
    const Slot slot = slot_of(keys.front());
    const model::Store& has = store();
    bool several = false, some = false, missing = false;
    for (const std::string& key : keys) {
        if (slot_of(key) != slot)
            return "-CROSSSLOT Keys in request don't hash to the same slot\r\n";
        const bool there = has.find(key) != nullptr;
        several = several || key != keys.front();
        some = some || there;
        missing = missing || !there;
    }
    if (kernel_.now() < fails_until_) return "-CLUSTERDOWN The cluster is down\r\n";
    const std::string later = "-TRYAGAIN Multiple keys request during rehashing of slot\r\n";
    const std::size_t has_it = owners_.at(slot);
    const auto to = leaving_.find(slot);
    if (has_it == number_ && to != leaving_.end()) {
        if (!missing) return {};
        return some ? later : redirect("ASK", slot, to->second);
    }
    if (coming_.contains(slot) && asking_) return several && missing ? later : "";
    return has_it == number_ ? "" : redirect("MOVED", slot, has_it);
}

std::string ClusterServer::redirect(const char* word, Slot slot, std::size_t to) const {
    return std::string("-") + word + " " + std::to_string(slot) + " " + host(to) + ":" +
           cluster_port + "\r\n";
}

std::string ClusterServer::id_of(std::size_t server) {
    return std::string(39, 'c') + std::to_string(server);
}

std::string ClusterServer::about(const Words& words) const {
    const std::string& what = words.at(1);
    if (what == "SLOTS") return slots();
    if (what == "NODES") return bulk(nodes());
    if (what == "KEYSLOT") return ":" + std::to_string(slot_of(words.at(2))) + "\r\n";
    throw std::runtime_error("the simulated cluster does not know CLUSTER " + what);
}

std::vector<ClusterServer::Range> ClusterServer::ranges() const {
    std::vector<Range> all;
    for (std::size_t s = 0; s < slot_count; ++s) {
        if (all.empty() || all.back().owner != owners_[s]) all.push_back({s, s, owners_[s]});
        all.back().last = s;
    }
    return all;
}

std::string ClusterServer::slots() const {
    const auto node = [](std::size_t server) {
        return "*4\r\n" + bulk(host(server)) + ":" + cluster_port + "\r\n" + bulk(id_of(server)) +
               "*0\r\n";
    };
    const auto all = ranges();
    std::string out = "*" + std::to_string(all.size()) + "\r\n";
    for (const Range& range : all) {
        std::string servers = node(range.owner);
        std::size_t count = 1;
        for (std::size_t i = 0; i < follows_.size(); ++i)
            if (i != range.owner && follows_[i] == range.owner) servers += node(i), ++count;
        out += "*" + std::to_string(2 + count) + "\r\n:" + std::to_string(range.first) +
               "\r\n:" + std::to_string(range.last) + "\r\n" + servers;
    }
    return out;
}

std::string ClusterServer::nodes() const {
    const auto all = ranges();
    std::string out;
    for (std::size_t i = 0; i < follows_.size(); ++i) {
        const bool primary = follows_[i] == i;
        out += id_of(i) + " " + host(i) + ":" + cluster_port + "@16379 ";
        out += std::string(i == number_ ? "myself," : "") + (primary ? "master -" : "slave ") +
               (primary ? "" : id_of(follows_[i])) + " 0 0 ";
        out += std::to_string(epochs_[follows_[i]]) + " connected";
        for (const Range& r : all)
            if (r.owner == i)
                out += " " + std::to_string(r.first) +
                       (r.first == r.last ? "" : "-" + std::to_string(r.last));
        for (const auto& [slot, to] : leaving_)
            if (i == number_) out += " [" + std::to_string(slot) + "->-" + id_of(to) + "]";
        for (const Slot slot : coming_)
            if (i == number_)
                out += " [" + std::to_string(slot) + "-<-" + id_of(owners_.at(slot)) + "]";
        out += "\n";
    }
    return out;
}

}  // namespace holdfast::sim
