// What a session knows of the lines in which its places stand, and which of them it lets in.
#pragma once
#include <string>
#include <unordered_map>
#include <vector>

#include "queue.hpp"
#include "session_part.hpp"

namespace holdfast::zookeeper {

/// Lists lines, and watches the nodes that places wait for.
class QueueView : public SessionPart {
public:
    using SessionPart::SessionPart;

    Queue& of(const QueueNode& p);
    /// Null where no place of this session has stood lately.
    Queue* find(const std::string& parent);
    const Queue* find(const std::string& parent) const;

    /// Nothing is ahead of it that it has to wait for.
    bool lets_in(const QueueNode&) const;
    /// Whether something surely is. Requests what has to be known for that.
    bool blocked(const QueueNodePtr&);
    /// Whether a place of this client holds the name or stands in line for it, so that a single try
    /// fails without a request.
    bool known_busy(const spi::Attempt&) const;
    /// Strangers in the last list of its line.
    const std::vector<std::string>& strangers_beside(const QueueNode& p) { return of(p).strangers; }
    /// Ensures that the node ahead of it is watched, and lists the whole line now and then.
    void keep_waiting(const QueueNodePtr&);

    // --- for the other parts
    void want_list(Queue&);
    /// A node has vanished, or its holder reads from now on: its waiter may be let in.
    void vanished(Queue&, const std::string& node);
    void downgraded(Queue&, const std::string& node);
    /// Forgets lines without places, and asks again for lists that were refused.
    void tidy();
    /// What its watches notify of.
    void changed(const std::string& parent, const std::string& node, bool deleted);
    void children_changed(std::string_view path);
    void connected();
    void disconnected();
    void clear() { queues_.clear(); }

private:
    void listed(const std::string& parent, std::uint64_t number, Call&);
    void list_refused(const std::string& parent, error_code why);
    /// Notifies the waiters that may be let in, and watches what the others wait for.
    void refresh(Queue&);
    void refresh_permits(Queue&);
    void ask_watch(Queue&, const std::string& node);
    void blocker_seen(const std::string& parent, const std::string& node, const Call&);
    void let_in_behind(Queue&, const std::vector<QueueNodePtr>& behind);

    std::unordered_map<std::string, Queue> queues_;
};

}  // namespace holdfast::zookeeper
