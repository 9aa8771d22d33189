// Requests to the backend, collected for one turn of the engine's loop and sent together.
#pragma once
#include <cstddef>
#include <deque>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "holdfast/clock.hpp"

namespace holdfast {

/// A queue of items to send, of which at most `most` are under way. The others wait here, first
/// come, first served, since an overloaded server answers no request in time. An item that waits is
/// notified by queued_here(), by unanswered() when those before it got no answer at all, and by
/// to_be_sent() at its turn. Engine thread only.
template <class Item>
class Batches {
public:
    using Batch = std::vector<std::shared_ptr<Item>>;

    explicit Batches(std::size_t most) : most_(most) {}

    /// Drops all items: nothing is sent any more.
    void clear() noexcept {
        next_.clear();
        backlog_.clear();
    }
    void add(std::shared_ptr<Item> item) { next_.push_back(std::move(item)); }

    /// The items to send now. They count as under way until answered().
    Batch take() {
        Batch all;
        if (std::exchange(silent_, false) && !backlog_.empty()) {
            const auto now = boot_clock::now();
            for (const auto& item : backlog_)
                item->unanswered(now);
        }
        if (backlog_.empty() && under_way_ + next_.size() <= most_) {
            all.swap(next_);
        } else {
            for (auto& item : next_) {
                item->queued_here();
                backlog_.push_back(std::move(item));
            }
            next_.clear();
            while (!backlog_.empty() && under_way_ + all.size() < most_) {
                auto item = std::move(backlog_.front());
                backlog_.pop_front();
                if (item->to_be_sent()) all.push_back(std::move(item));
            }
        }
        under_way_ += all.size();
        return all;
    }

    /// `heard`: the server itself has answered. True: others may be sent now.
    bool answered(std::size_t count, bool heard) noexcept {
        under_way_ -= count;
        silent_ = !heard;
        return !backlog_.empty();
    }

private:
    const std::size_t most_;
    std::size_t under_way_ = 0;
    bool silent_ = false;
    Batch next_;
    std::deque<std::shared_ptr<Item>> backlog_;
};

}  // namespace holdfast
