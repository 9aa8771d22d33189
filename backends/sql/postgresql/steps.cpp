#include "exchange.hpp"

namespace holdfast::postgresql {
namespace {

std::string tokens(const Steps& steps) {
    return array(steps, [](const Step& s) { return s.token; });
}
std::int64_t mark_of(const Step& s) noexcept {
    return s.how == Outcome::done ? mark_released : mark_abandoned;
}

Rows look_at(Connection& c, const Steps& steps, Said& said) {
    Rows out;
    std::vector<std::pair<std::string, Row>> rows;
    said = look(c, keys_of(steps), last_deadline(steps), rows);
    for (auto& [key, row] : rows)
        out.insert_or_assign(key, std::move(row));
    if (said.error)
        for (Step* s : steps)
            refuse(*s, said);
    return out;
}

void renew_wave(Connection& c, const Steps& wave) {
    const auto renewed = [](Step& s, const pqxx::row&) {
        s.done = true;
        s.renewal = spi::Held::Renewal::renewed;
    };
    if (!exchange(c, Sql::renew, wave, {keys(wave), owners(wave), tokens(wave), ttls(wave)},
                  renewed))
        return;
    const Steps open = still_open(wave);
    if (open.empty()) return;
    Said said;
    const Rows rows = look_at(c, open, said);
    if (said.error) return;
    for (Step* s : open) {
        s->done = true;
        const auto at = rows.find(s->key);
        const bool ours = at != rows.end() && at->second.plain && at->second.token == s->token;
        if (ours && at->second.revoked) {
            s->renewal = spi::Held::Renewal::lost;
            s->error = make_error_code(errc::revoked);
        } else if (ours && at->second.live() && at->second.owner == s->owner) {
            s->error = make(Error::conflict);  // locked by somebody for a moment: once more, soon
        } else {
            s->renewal = spi::Held::Renewal::lost;
            s->error = make_error_code(errc::lost);
        }
    }
}

void tell_of(Connection& c, const Steps& contended) {
    if (contended.empty()) return;
    for (const std::string& key : tell(c, keys_of(contended), last_deadline(contended), false))
        for (Step* s : contended)
            if (s->key == key) s->handed_on = true;
}

void withdraw_all(Connection& c, const Steps& steps) {
    // All owners of one name share a row of the statement.
    struct Leaving {
        std::string owners;
        std::int64_t last = 0;
    };
    std::map<std::string_view, Leaving> names;
    for (const Step* s : steps) {
        Leaving& l = names[s->key];
        l.owners += (l.owners.empty() ? "{\"" : ", \"") + s->owner + "\": " + text(s->ghost);
        l.last = std::max(l.last, s->ghost);
    }
    ArrayText key, owner, last;
    for (const auto& [name, l] : names) {
        key.add(name);
        owner.add(std::string_view(l.owners + "}"));
        last.add(l.last);
    }
    const Said said =
        c.run(Sql::withdraw, {key.take(), owner.take(), last.take()}, last_deadline(steps));
    for (Step* s : steps) {
        if (said.error)
            refuse(*s, said);
        else
            s->done = true;
    }
    if (said.error) return;
    Steps contended;
    for (const auto& r : said.rows)
        for (Step* s : steps)
            if (s->key == column(r, 0)) {
                s->freed = true;
                if (column(r, 1) == "t") contended.push_back(s);
            }
    tell_of(c, contended);
}

void release_wave(Connection& c, const Steps& wave) {
    Steps contended;
    const auto released = [&](Step& s, const pqxx::row& r) {
        s.done = s.freed = true;
        s.released = ReleaseResult::released;
        if (column(r, 1) == "t") contended.push_back(&s);
    };
    if (wave.size() > 1) {
        const auto marks = array(wave, mark_of);
        if (!exchange(c, Sql::release_many, wave, {keys(wave), owners(wave), tokens(wave), marks},
                      released))
            return;
    } else {
        Step& s = *wave.front();
        const Said said =
            c.run(Sql::release, {s.key, s.owner, text(s.token), text(mark_of(s))}, s.deadline);
        if (said.error) return refuse(s, said);
        for (const auto& r : said.rows)
            released(s, r);
    }
    tell_of(c, contended);
    // A request of the same owner may still be under way: it must not take the lock again.
    Steps haunted;
    for (Step* s : wave)
        if (s->done && s->ghost > c.shared().server_us(boot_clock::now())) haunted.push_back(s);
    if (!haunted.empty()) withdraw_all(c, haunted);
    const Steps open = still_open(wave);
    if (open.empty()) return;
    Said said;
    const Rows rows = look_at(c, open, said);
    if (said.error) return;
    for (Step* s : open) {
        s->done = true;
        const auto at = rows.find(s->key);
        const Row* row = at == rows.end() ? nullptr : &at->second;
        if (row != nullptr && row->plain && row->token == s->token)
            // Free with our token: an earlier release of ours got through, unless it was broken.
            s->released = !row->owned && !row->revoked ? ReleaseResult::released
                                                       : ReleaseResult::already_expired;
        else
            s->released = row != nullptr && row->live() ? ReleaseResult::owned_by_other
                                                        : ReleaseResult::already_expired;
    }
}

}  // namespace

milliseconds look_again(std::int64_t left_us, milliseconds ttl) noexcept {
    const auto longest = std::max(std::min(ttl / 3, milliseconds(1000)), milliseconds(1));
    return std::clamp(milliseconds(left_us / 1000 + 1), milliseconds(1), longest);
}

Said look(Connection& c, const std::vector<std::string>& names, boot_clock::time_point deadline,
          std::vector<std::pair<std::string, Row>>& rows) {
    Said said = c.run(Sql::look, {array_of(names), c.shared().me}, deadline);
    if (said.error) return said;
    for (const auto& r : said.rows) {
        Row row;
        row.owned = !r[1].is_null();
        row.owner = column(r, 1);
        row.token = number(r, 2);
        row.left_us = row.owned ? number(r, 3) : 0;
        row.held_us = row.owned && !r[4].is_null() ? number(r, 4) : -1;
        row.mark = static_cast<int>(number(r, 5));
        row.revoked = column(r, 6) == "t";
        row.plain = column(r, 7) == "t";
        row.placed = column(r, 8) == "t";
        c.shared().heard_clock(number(r, 9));
        rows.emplace_back(column(r, 0), std::move(row));
    }
    return said;
}

std::vector<std::string> tell(Connection& c, const std::vector<std::string>& keys,
                              boot_clock::time_point deadline, bool leave) {
    const Said said =
        c.run(Sql::tell, {array_of(keys), c.shared().me, leave ? "true" : "false"}, deadline);
    std::vector<std::string> others;
    for (const auto& r : said.rows)
        if (column(r, 1) == "t") others.emplace_back(column(r, 0));
    return others;
}

void run_steps(Connection& c, std::span<Step* const> all) {
    const auto of_kind = [&](Step::Kind kind) {
        Steps steps;
        const auto now = boot_clock::now();
        for (Step* s : all) {
            if (s->kind != kind || s->done) continue;
            if (now < s->deadline) {
                steps.push_back(s);
                continue;
            }
            Said late;
            late.error = make(Error::no_answer);
            refuse(*s, late);
        }
        return steps;
    };
    // First, so that nothing that is freed here is told to whoever leaves.
    if (const Steps leaving = of_kind(Step::Kind::leave); !leaving.empty())
        tell(c, keys_of(leaving), last_deadline(leaving), true);
    in_waves(of_kind(Step::Kind::release), [&](const Steps& wave) { release_wave(c, wave); });
    if (const Steps leaving = of_kind(Step::Kind::withdraw); !leaving.empty())
        withdraw_all(c, leaving);
    in_waves(of_kind(Step::Kind::renew), [&](const Steps& wave) { renew_wave(c, wave); });
    Rows known;
    in_waves(of_kind(Step::Kind::attempt),
             [&](const Steps& wave) { attempt_wave(c, wave, known); });
}

void sweep(Connection& c, boot_clock::time_point deadline, std::string& cursor) noexcept {
    try {
        const Said said = c.run(Sql::sweep, {cursor}, deadline);
        cursor.clear();
        if (said.error || said.rows.empty() || number(said.rows[0], 1) < 1000) return;
        cursor = column(said.rows[0], 0);
    } catch (const std::exception&) {
        cursor.clear();
    }
}

}  // namespace holdfast::postgresql
