// Which member of the cluster is asked: the same one, over one connection, until another member is
// asked because this one does not answer.
#pragma once
#include <etcd.pb.h>

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "../tls/stream.hpp"
#include "connection.hpp"
#include "holdfast/spi/net/gate.hpp"
#include "identity.hpp"
#include "methods.hpp"
#include "shared.hpp"

namespace holdfast::etcd {

/// Engine thread only; its users keep it alive.
class Members : public std::enable_shared_from_this<Members> {
public:
    explicit Members(std::shared_ptr<Shared>);
    ~Members();

    /// How long an answer may be.
    enum class Length : std::uint8_t { brief, list };
    /// True: no answer, or an error answer.
    struct Answer : spi::Failure {
        Answer(Failure f = {}) noexcept : Failure(std::move(f)) {}
        bool doubt = false;     ///< a member may have executed it
        bool repeated = false;  ///< it was sent twice, since the first connection had ended
        bool unsent = false;    ///< others had its time, and were answered
    };
    using Message = google::protobuf::MessageLite;
    /// Calls a method (methods.hpp), as the user if there is one. Waits for its turn when many
    /// requests are under way. Ends at the deadline. A request that was surely not executed goes to
    /// the next member.
    template <class Reply>
    awaitable<Answer> post(std::string_view method, const Message& request, Reply& reply,
                           boot_clock::time_point deadline, Length length = Length::brief) {
        return post({method, request, reply, header_of<Reply>, length}, deadline);
    }
    /// How often the cluster behind the hosts was made anew.
    unsigned generation() const noexcept { return generation_; }
    using Watcher = Connection::Watcher;
    /// Calls, and tells the watcher what arrives until the call or the watcher ends. Returns no
    /// error, or why it could not begin by `deadline`. One at a time.
    awaitable<error_code> follow(std::shared_ptr<Watcher>, std::string_view method,
                                 const Message& request, boot_clock::time_point deadline);

    /// The member that answers, for people. Empty: none does now.
    std::string serving() const { return in_use_ ? in_use_->serving() : std::string(); }

    /// Ends every connection. Nothing is posted any more.
    void close() noexcept;
    std::size_t size() const noexcept { return shared_->options.hosts.size(); }

private:
    using ConnectionPtr = std::shared_ptr<Connection>;
    struct Post {
        std::string_view method;
        const Message& request;
        Message& reply;
        /// Null: there is none.
        const rpc::ResponseHeader* (*header)(const Message&);
        Length length;
    };
    template <class Reply>
    static const rpc::ResponseHeader* header_of(const Message& m) {
        const auto& reply = static_cast<const Reply&>(m);
        return reply.has_header() ? &reply.header() : nullptr;
    }
    struct Turn;
    awaitable<Answer> post(Post, boot_clock::time_point deadline);
    /// ... with the user's token, and of hosts that were compared.
    awaitable<Answer> post_as_user(Post, boot_clock::time_point deadline);
    awaitable<Answer> send(Post, boot_clock::time_point deadline);
    /// Gets a token for the user. Callers that come meanwhile wait for the same one.
    awaitable<spi::Failure> authenticate(boot_clock::time_point deadline);
    /// Refuses hosts that cannot all be members of one cluster. Callers that come meanwhile wait.
    awaitable<spi::Failure> compare_hosts(boot_clock::time_point deadline);
    awaitable<spi::Failure> hear_hosts(boot_clock::time_point deadline);
    /// False: half of the time until the deadline was over first.
    awaitable<bool> turn(boot_clock::time_point deadline);
    void give_turn();
    /// A member has answered, after so long.
    void heard(boot_clock::duration took) noexcept;
    ConnectionPtr connection_to(std::size_t member);
    ConnectionPtr connection();
    awaitable<Connection::Outcome> ask(Connection&, const Post&, boot_clock::time_point deadline);
    /// What an answer says of its member.
    void judge(const Connection&, const Post&, Connection::Outcome&);
    /// What the server says, unless it repeats a secret.
    std::string shown(const std::string& words) const;
    /// Until when a request on that connection may take; see `cut_`.
    boot_clock::time_point limit(const Connection&, boot_clock::time_point deadline) const;
    /// It did not answer: ends a watch that would be as silent, and asks the next member from now
    /// on.
    void leave(const Connection&);

    std::shared_ptr<Shared> shared_;
    const std::shared_ptr<tls::Context> tls_;  ///< null: no TLS
    std::string token_;                        ///< of the user; empty: none yet
    std::string password_;                     ///< as it was sent last
    Identity identity_;
    unsigned generation_ = 0;
    bool authenticating_ = false, no_users_ = false;
    spi::net::Gate authenticated_;
    bool comparing_ = false, compared_;
    spi::net::Gate comparison_;
    std::size_t at_ = 0;  ///< the member in use
    ConnectionPtr in_use_;
    std::vector<std::weak_ptr<Connection>> all_;
    std::shared_ptr<Watcher> watcher_;
    std::deque<std::shared_ptr<Turn>> waiting_;
    std::size_t under_way_ = 0;
    std::uint64_t answered_ = 0;  ///< how many were, well
    // A member that does not answer a new connection leaves time for the others. Where they are as
    // silent, it is the limit that was too short.
    std::size_t cut_ = 0;  ///< how many in a row had no answer in their share of the time
    /// A new connection has at least this: twice what an answer took lately; quick ones shrink it.
    milliseconds patience_{};
    bool closed_ = false;
};

}  // namespace holdfast::etcd
