#include "network.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace holdfast::sim {

Nanos Route::delay() {
    return kernel.random().between(shortest, longest);
}

void Route::cut(Way w) {
    cut_[w] = true;
}

void Route::heal(Way w) {
    if (!std::exchange(cut_[w], false)) return;
    std::erase_if(connections, [](const auto& c) { return c.expired(); });
    for (const auto& weak : connections) {
        const auto c = weak.lock();
        auto& way = c->ways_[w];
        const Nanos now = kernel.now(), again = now + kernel.random().between(0, 300 * ms);
        for (auto& sent : way.under_way)
            if (sent.due <= now) c->deliver_at(w, sent.due = std::max(again, now + delay()));
    }
}

void Connection::open() {
    put(to_server, {Parcel::Kind::hello});
}

void Connection::send(std::string bytes) {
    put(to_server, {Parcel::Kind::bytes, std::move(bytes)});
}

void Connection::client_closes() {
    client_closed_ = true;
    put(to_server, {Parcel::Kind::end});
}

void Connection::reply(std::string bytes) {
    if (at_server_) put(to_client, {Parcel::Kind::bytes, std::move(bytes)});
}

void Connection::server_closes(bool loses) {
    if (!std::exchange(at_server_, false)) return;
    if (loses) ways_[to_client].lost_before = ways_[to_client].sent;
    put(to_client, {Parcel::Kind::reset});
}

void Connection::break_off(bool tell_client, bool tell_server) {
    for (auto& way : ways_)
        if (route_.kernel.random().chance(500)) way.lost_before = way.sent;
    if (tell_server) {
        put(to_server, {Parcel::Kind::end});
    } else {
        // What it sends goes nowhere.
        ways_[to_client].lost_before = never;
    }
    auto &answers = ways_[to_client], &requests = ways_[to_server];
    if (tell_client) {
        put(to_client, {Parcel::Kind::reset});
        // No stream goes on behind a gap, until the client learns of it.
        if (!tell_server && requests.sent > 0 && requests.lost_before == requests.sent)
            requests.lost_before = never;
    } else if (!tell_server) {
        requests.lost_before = never;
    } else if (answers.sent > 0 && answers.lost_before == answers.sent) {
        // No stream goes on behind a gap, until the server learns of it.
        answers.lost_before = never;
    }
}

void Connection::put(Way w, Parcel p) {
    auto& way = ways_[w];
    way.last = std::max(way.last + 1, route_.kernel.now() + route_.delay());
    way.under_way.push_back({++way.sent, way.last, std::move(p)});
    deliver_at(w, way.last);
}

void Connection::deliver_at(Way w, Nanos due) {
    route_.kernel.at(due, [self = shared_from_this(), w] { self->deliver(w); });
}

void Connection::deliver(Way w) {
    auto& way = ways_[w];
    while (!route_.is_cut(w) && !way.under_way.empty() &&
           way.under_way.front().due <= route_.kernel.now()) {
        Sent next = std::move(way.under_way.front());
        way.under_way.pop_front();
        const bool is_reset = next.parcel.kind == Parcel::Kind::reset;
        if (is_reset || next.number > way.lost_before) arrive(w, std::move(next.parcel));
    }
}

void Connection::arrive(Way w, Parcel p) {
    if (w == to_server)
        at_the_server(p);
    else
        at_the_client(p);
}

void Connection::at_the_server(Parcel& p) {
    using Kind = Parcel::Kind;
    if (p.kind == Kind::hello) {
        if (!route_.server.listens()) return put(to_client, {Kind::reset});
        at_server_ = true;
        route_.server.opened(shared_from_this());
        return put(to_client, {Kind::accepted});
    }
    if (!at_server_) {
        // It knows nothing of this connection.
        if (p.kind == Kind::bytes) put(to_client, {Kind::reset});
        return;
    }
    if (p.kind == Kind::bytes) return route_.server.arrived(*this, p.bytes);
    at_server_ = false;
    route_.server.closed(*this);
}

void Connection::at_the_client(Parcel& p) {
    using Kind = Parcel::Kind;
    const auto s = socket_.lock();
    if (!s || client_closed_) return;
    switch (p.kind) {
        case Kind::accepted:
            s->state = Socket::State::connected;
            break;
        case Kind::bytes:
            s->inbox += p.bytes;
            break;
        case Kind::reset:
            s->error = s->state == Socket::State::connecting ? ECONNREFUSED : ECONNRESET;
            s->state = Socket::State::failed;
            s->ended = true;
            break;
        case Kind::end:
            s->ended = true;
            break;
        case Kind::hello:
            break;
    }
    s->changed();
}

}  // namespace holdfast::sim
