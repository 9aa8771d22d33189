#include "descriptors.hpp"

#include <algorithm>
#include <cerrno>

#include "network.hpp"

namespace holdfast::sim {

void Descriptor::changed() {
    Kernel& k = *Kernel::running();
    for (const auto& [epoll, fd] : watched_by_) {
        epoll->interests_.at(fd).edge = true;
        k.wake(epoll->waits_);
    }
    for (Thread* t : waiting_)
        k.wake(t);
}

void Epoll::closed() {
    for (auto& [fd, one] : interests_)
        std::erase(one.in->watched_by_, std::pair(this, fd));
    interests_.clear();
}

int Epoll::control(int what, int fd, const std::shared_ptr<Descriptor>& d,
                   const epoll_event* wanted) {
    const auto at = interests_.find(fd);
    if (what == EPOLL_CTL_DEL) {
        if (at == interests_.end()) return ENOENT;
        std::erase(d->watched_by_, std::pair(this, fd));
        interests_.erase(at);
        return 0;
    }
    if (what == EPOLL_CTL_ADD && at != interests_.end()) return EEXIST;
    if (what == EPOLL_CTL_MOD && at == interests_.end()) return ENOENT;
    if (what == EPOLL_CTL_ADD) d->watched_by_.emplace_back(this, fd);
    interests_[fd] = {d, *wanted, true};
    if (d->ready() != 0) Kernel::running()->wake(waits_);
    return 0;
}

int Epoll::wait(epoll_event* out, int most, int milliseconds) {
    Kernel& k = *Kernel::running();
    const Nanos until = milliseconds < 0 ? never : k.now() + milliseconds * ms;
    for (;;) {
        int n = 0;
        // Not always the same one first.
        const auto size = interests_.size();
        auto at = interests_.begin();
        if (size > 1) std::advance(at, static_cast<std::ptrdiff_t>(k.random().below(size)));
        for (std::size_t i = 0; i < size && n < most; ++i) {
            Interest& one = at->second;
            const std::uint32_t now = one.in->ready() & (one.wanted.events | EPOLLERR | EPOLLHUP);
            const bool on_edge = (one.wanted.events & EPOLLET) != 0;
            if (now != 0 && (one.edge || !on_edge)) {
                out[n] = one.wanted;
                out[n++].events = now;
                one.edge = false;
            }
            if (++at == interests_.end()) at = interests_.begin();
        }
        if (n > 0 || k.now() >= until) return n;
        waits_ = k.current();
        k.block(until);
        waits_ = nullptr;
    }
}

void Timer::set(Nanos at, const std::shared_ptr<Timer>& self) {
    expired = false;
    due = at;
    const auto number = ++number_;
    if (at == 0) return;
    Kernel::running()->at(process->when(at), [self, number] {
        if (self->number_ != number) return;
        self->expired = true;
        self->due = 0;
        self->changed();
    });
}

std::uint32_t Socket::ready() const {
    std::uint32_t now = 0;
    if (!inbox.empty() || ended || error != 0) now |= EPOLLIN;
    if (state == State::connected || state == State::failed || error != 0) now |= EPOLLOUT;
    if (error != 0) now |= EPOLLERR;
    if (state == State::failed || error != 0) now |= EPOLLHUP;
    if (state == State::fresh) now |= EPOLLHUP | EPOLLOUT;
    return now;
}

void Socket::shut_down() {
    if (connection) connection->client_closes();
    connection.reset();
    state = State::failed;  // what waits for it to be writable is told so
    ended = true;
    changed();
}

void Socket::closed() {
    if (connection) connection->client_closes();
    connection.reset();
}

int Descriptors::add(std::shared_ptr<Descriptor> d) {
    if (d->process == nullptr) d->process = Kernel::running()->process();
    auto at = std::find(all_.begin(), all_.end(), nullptr);
    if (at == all_.end()) at = all_.insert(all_.end(), nullptr);
    *at = std::move(d);
    ++open_;
    return first + static_cast<int>(at - all_.begin());
}

std::shared_ptr<Descriptor> Descriptors::find(int fd) const {
    const auto i = static_cast<std::size_t>(fd - first);
    return fd >= first && i < all_.size() ? all_[i] : nullptr;
}

int Descriptors::close(int fd) {
    const auto d = find(fd);
    if (!d) return EBADF;
    all_[static_cast<std::size_t>(fd - first)] = nullptr;
    --open_;
    // A closed number leaves the sets that it is in.
    for (const auto& [epoll, as] : std::vector(d->watched_by_))
        if (as == fd) epoll->control(EPOLL_CTL_DEL, fd, d, nullptr);
    // The last number of several.
    if (std::find(all_.begin(), all_.end(), d) == all_.end()) d->closed();
    return 0;
}

void Descriptors::wait_for(const std::vector<Descriptor*>& all, Nanos until) {
    Kernel& k = *Kernel::running();
    for (Descriptor* d : all)
        d->waiting_.push_back(k.current());
    k.block(until);
    for (Descriptor* d : all)
        std::erase(d->waiting_, k.current());
}

}  // namespace holdfast::sim
