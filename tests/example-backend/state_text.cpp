#include "state_text.hpp"

#include <sstream>
#include <vector>

namespace ledger {
namespace {

using holdfast::spi::NameState;
using holdfast::spi::Units;

constexpr std::string_view format = "lock1";

// Owner ids have no spaces, and none is this.
constexpr std::string_view nobody = "-";

void put(std::ostream& out, const std::string& owner) {
    out << ' ' << (owner.empty() ? nobody : std::string_view(owner));
}
void get(std::istream& in, std::string& owner) {
    in >> owner;
    if (owner == nobody) owner.clear();
}

template <class Enum>
void get_enum(std::istream& in, Enum& e) {
    int value = 0;
    in >> value;
    e = static_cast<Enum>(value);
}

void put(std::ostream& out, const Units& u) {
    out << ' ' << u.take << ' ' << u.of << ' ' << static_cast<int>(u.mode);
}
void get(std::istream& in, Units& u) {
    in >> u.take >> u.of;
    get_enum(in, u.mode);
}

void put(std::ostream& out, const NameState::Holding& h) {
    put(out, h.owner);
    put(out, h.units);
    out << ' ' << h.token << ' ' << h.since << ' ' << h.valid << ' ' << h.expires << ' '
        << static_cast<int>(h.previous) << ' ' << h.revoked << ' ' << h.asked;
}
void get(std::istream& in, NameState::Holding& h) {
    get(in, h.owner);
    get(in, h.units);
    in >> h.token >> h.since >> h.valid >> h.expires;
    get_enum(in, h.previous);
    in >> h.revoked >> h.asked;
}

void put(std::ostream& out, const NameState::Waiter& w) {
    put(out, w.owner);
    put(out, w.units);
    out << ' ' << w.ticket << ' ' << w.until;
}
void get(std::istream& in, NameState::Waiter& w) {
    get(in, w.owner);
    get(in, w.units);
    in >> w.ticket >> w.until;
}

void put(std::ostream& out, const NameState::BrokenHolder& b) {
    put(out, b.owner);
    out << ' ' << b.until;
}
void get(std::istream& in, NameState::BrokenHolder& b) {
    get(in, b.owner);
    in >> b.until;
}

template <class T>
void put(std::ostream& out, const std::vector<T>& all) {
    out << ' ' << all.size();
    for (const T& one : all)
        put(out, one);
}
template <class T>
void get(std::istream& in, std::vector<T>& all) {
    std::size_t count = 0;
    in >> count;
    while (in && all.size() < count)
        get(in, all.emplace_back());
}

}  // namespace

std::string to_text(const NameState& s) {
    std::ostringstream out;
    out << format << ' ' << s.token << ' ' << static_cast<int>(s.previous);
    put(out, s.ended ? std::vector{*s.ended} : std::vector<NameState::Holding>());
    put(out, s.holders);
    put(out, s.waiters);
    put(out, s.broken);
    return out.str();
}

std::optional<NameState> state_from(const std::string& text) {
    std::istringstream in(text);
    NameState s;
    std::string first;
    std::vector<NameState::Holding> ended;
    in >> first >> s.token;
    get_enum(in, s.previous);
    get(in, ended);
    get(in, s.holders);
    get(in, s.waiters);
    get(in, s.broken);
    if (!in || first != format) return {};
    if (!ended.empty()) s.ended = ended.front();
    return s;
}

}  // namespace ledger
