#include "members.hpp"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "../../resp/errors.hpp"
#include "../../resp/majority.hpp"
#include "holdfast/spi/net/endpoint.hpp"

namespace holdfast::redis {
namespace {

constexpr milliseconds look_pause{20}, longest_look_pause{250};

/// A server as its backend sees it.
class NodeMember final : public Member {
public:
    NodeMember(std::weak_ptr<Members> members, Node& node)
        : members_(std::move(members)), node_(node) {}

    void leads_to(std::shared_ptr<Where> host) override { host_ = std::move(host); }
    asio::awaitable<spi::Answer<Location>> find(boot_clock::time_point deadline) override {
        const auto members = members_.lock();
        if (!members) co_return spi::Failure(errc::closed);
        const unsigned move = node_.backend->moves();
        // It was connected before: the server may have failed.
        if (std::exchange(used_, true) && !node_.asked) members->look();
        auto finding = host_->find(deadline);
        auto found = co_await std::move(finding);
        if (found) found->move = move;
        co_return found;
    }
    std::string unanswered() const override { return host_->unanswered(); }
    spi::Failure judged(spi::Failure failed) const override {
        const auto members = members_.lock();
        return members ? members->judged(node_, std::move(failed)) : failed;
    }
    void moved(const Redirect& r) override {
        if (const auto members = members_.lock()) members->put(r.slot, whole(r.to));
    }
    void uncovered() override {
        if (const auto members = members_.lock()) members->look();
    }
    bool has(Slot slot) const override {
        const auto members = members_.lock();
        return !members || members->of(slot) == &node_;
    }
    spi::Endpoint whole(spi::Endpoint e) const override {
        if (e.host.empty()) e.host = node_.endpoint.host;
        return e;
    }

private:
    const std::weak_ptr<Members> members_;
    Node& node_;
    std::shared_ptr<Where> host_;
    bool used_ = false;
};

}  // namespace

/// A question to several servers.
struct Members::Round {
    std::vector<ClusterView> views;
    std::size_t left = 0;
};

Members::Members(asio::any_io_executor e, const spi::Settings& s, Make make, Moved moved)
    : executor_(std::move(e)),
      settings_(s),
      make_(std::move(make)),
      moved_(std::move(moved)),
      ttl_(s.duration("ttl")),
      patience_(patience_with_answers(s)),
      pause_(executor_) {}

Node& Members::at(const spi::Endpoint& e) {
    for (const auto& node : nodes_)
        if (node->endpoint == e) return *node;
    auto node = std::make_unique<Node>();
    node->endpoint = e;
    spi::Settings s = settings_;
    s.hosts = {e};
    node->display = s.display();
    node->backend = make_(s, std::make_shared<NodeMember>(weak_from_this(), *node));
    const std::lock_guard hold(mutex_);
    nodes_.push_back(std::move(node));
    return *nodes_.back();
}

std::uint64_t Members::requests() const {
    const std::lock_guard hold(mutex_);
    std::uint64_t all = 0;
    for (const auto& node : nodes_)
        all += node->backend->requests();
    return all;
}

std::string Members::serving() const {
    const std::lock_guard hold(mutex_);
    std::string all;
    for (const auto& node : nodes_)
        if (const auto one = node->backend->serving(); !one.empty())
            all += (all.empty() ? "" : ", ") + one;
    return all;
}

asio::awaitable<spi::Failure> Members::ready(boot_clock::time_point deadline) {
    const auto self = shared_from_this();
    const std::size_t before = rounds_;
    while (!known_ && !closed_ && rounds_ == before && boot_clock::now() < deadline) {
        look();
        auto wait = gate_.wait(executor_, deadline);
        co_await std::move(wait);
    }
    if (closed_) co_return errc::closed;
    if (known_) co_return spi::Failure();
    if (failed_) co_return failed_;
    co_return spi::Failure(make(Error::no_answer), settings_.display() + ": no answer in time");
}

void Members::look() {
    wanted_until_ = boot_clock::now() + ttl_;
    again_ = true;
    if (closed_ || std::exchange(watching_, true)) return;
    auto task = watch();
    asio::co_spawn(executor_, std::move(task),
                   [self = shared_from_this()](const std::exception_ptr& failed) {
                       if (failed) self->watching_ = false;  // the next look begins anew
                   });
}

asio::awaitable<void> Members::watch() {
    const auto self = shared_from_this();
    milliseconds pause = look_pause;
    while (!closed_ && (again_ || boot_clock::now() < wanted_until_)) {
        again_ = false;
        auto asking = ask_all(boot_clock::now() + patience_);
        co_await std::move(asking);
        ++rounds_;
        gate_.open();
        // In any case: redirections come in flocks.
        pause_.expires_after(pause);
        pause = std::min(2 * pause, longest_look_pause);
        error_code ignored;
        auto token = asio::redirect_error(asio::use_awaitable, ignored);
        co_await pause_.async_wait(token);
        if (settled() && !again_) break;
    }
    watching_ = false;
}

bool Members::settled() const {
    return whole_ && std::all_of(nodes_.begin(), nodes_.end(),
                                 [](const auto& n) { return !n->primary || n->answered; });
}

asio::awaitable<void> Members::ask_all(boot_clock::time_point deadline) {
    std::vector<Node*> to;
    std::size_t primaries = 0;
    for (const auto& node : nodes_)
        if (node->primary) to.push_back(node.get()), ++primaries;
    // Where too few answer, those of the URL may know more, since their names may lead elsewhere by
    // now, and those that the few have named: others may have taken over long ago.
    const auto also = [&](const spi::Endpoint& e) {
        Node* const node = &at(e);
        if (std::find(to.begin(), to.end(), node) == to.end()) to.push_back(node);
    };
    if (few_) {
        std::for_each(settings_.hosts.begin(), settings_.hosts.end(), also);
        std::for_each(named_.begin(), named_.end(), also);
    }
    const auto round = std::make_shared<Round>();
    for (Node* node : to) {
        node->answered = false;
        if (node->asked) continue;  // it still has the question before
        node->asked = true;
        ++round->left;
        auto task = ask(*node, round, deadline - patience_ / 10);
        asio::co_spawn(executor_, std::move(task),
                       [self = shared_from_this(), node, round](const std::exception_ptr&) {
                           node->asked = false;
                           --round->left;
                           self->gate_.open();
                       });
    }
    const std::size_t enough = majority(known_ ? primaries : to.size());
    while (!closed_ && round->left > 0 && round->views.size() < enough &&
           boot_clock::now() < deadline) {
        auto wait = gate_.wait(executor_, deadline);
        co_await std::move(wait);
    }
    // The word of a minority counts only where nothing is known.
    few_ = round->views.size() < enough;
    if (round->views.empty() || closed_) co_return;
    const SlotTable table = merged(round->views);
    named_ = few_ ? table.primaries : std::vector<spi::Endpoint>();
    if (few_ && known_) co_return;
    decided_ = boot_clock::now();
    take(table);
}

// Ends before its round does, so that the error says why.
asio::awaitable<void> Members::ask(Node& node, std::shared_ptr<Round> round,
                                   boot_clock::time_point deadline) {
    const auto self = shared_from_this();
    spi::Failure failed;
    try {
        std::vector<Command> questions(2);
        questions[0].add("CLUSTER").add("SLOTS");
        questions[1].add("CLUSTER").add("NODES");
        auto asking = node.backend->ask(std::move(questions), deadline);
        const auto said = co_await std::move(asking);
        ClusterView view;
        if (!said) {
            failed = said.error();
        } else if (const Reply& slots = said->front(); slots.is(Reply::Type::error)) {
            failed = {from_reply(slots.text), std::string(shown(slots.text))};
        } else if (auto ranges = ranges_of(slots, node.endpoint.host); !ranges) {
            failed = make(Error::protocol);
        } else {
            view.ranges = std::move(*ranges);
            // Without the permission the epochs are unknown, and alike.
            if (const Reply& nodes = said->back(); nodes.is_text())
                view.epochs = epochs_of(nodes.text);
            node.answered = true;
            round->views.push_back(std::move(view));
        }
    } catch (const std::exception& e) {
        failed = {make(Error::refused), e.what()};
    }
    if (failed) {
        if (failed.detail.find(node.display) == failed.detail.npos)
            failed.detail = node.display + ": " + failed.text();
        failed_ = std::move(failed);
    }
}

void Members::take(const SlotTable& table) {
    const bool first = !std::exchange(known_, true);
    std::vector<Node*> owners;
    for (const spi::Endpoint& e : table.primaries)
        owners.push_back(&at(e));
    // By the server before, where its slots are now.
    std::vector<std::pair<Node*, Node*>> gone;
    for (const auto& node : nodes_) {
        const bool now = std::find(owners.begin(), owners.end(), node.get()) != owners.end();
        const bool before = std::exchange(node->primary, now);
        if (before && !now) gone.emplace_back(node.get(), nullptr);
        // It was asked for the slots only.
        if (!before && !now && (first || std::exchange(node->answered, false)))
            node->backend->leave();
    }
    for (std::size_t s = 0; s < slot_count; ++s) {
        const auto owner = table.owner[s];
        Node* const now = owner == SlotTable::none ? nullptr : owners[owner];
        Node* const before = slots_[s].exchange(now, std::memory_order_acq_rel);
        for (auto& [from, to] : gone)
            if (from == before && to == nullptr) to = now;
    }
    whole_ = table.whole;
    for (const auto& [from, to] : gone) {
        from->backend->leave();
        if (to != nullptr) moved_(spi::text_of(from->endpoint), spi::text_of(to->endpoint));
    }
}

spi::Failure Members::judged(const Node& node, spi::Failure failed) {
    if (failed.why != errc::unavailable || failed.why == make(Error::no_primary)) return failed;
    if (!node.asked) look();
    const bool lately = boot_clock::now() - decided_ < 2 * longest_look_pause + 2 * patience_;
    if (failed.why == make(Error::tls) || !known_ || few_ || !lately) return failed;
    return {make(Error::no_primary), failed.text()};
}

void Members::put(Slot slot, const spi::Endpoint& to) {
    Node& node = at(to);
    node.primary = true;
    slots_[slot].store(&node, std::memory_order_release);
    look();
}

void Members::close() noexcept {
    closed_ = true;
    pause_.cancel();
    gate_.open();
}

}  // namespace holdfast::redis
