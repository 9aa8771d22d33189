// The way to the members of the cluster: HTTP connections that are kept and used again, at most one
// request on each, and another member when one does not answer.
#pragma once
#include <boost/json/object.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "../tls/stream.hpp"
#include "holdfast/spi/net/gate.hpp"
#include "shared.hpp"

namespace holdfast::etcd {

/// Engine thread only, kept by whoever uses it.
class Members : public std::enable_shared_from_this<Members> {
public:
    explicit Members(std::shared_ptr<Shared>);
    ~Members();

    struct Answer {
        error_code why;         ///< no answer, or one that is an error
        bool doubt = false;     ///< a member may have executed it all the same
        bool repeated = false;  ///< it was sent twice, as the first connection had ended
        boost::json::object body;
    };
    /// Posts `body` to "/v3/PATH", as the user where there is one. With many requests under way it
    /// waits for its turn. Ends at the deadline. A request that was surely not executed goes to the
    /// next member.
    awaitable<Answer> post(std::string path, std::string body, boot_clock::time_point deadline,
                           std::string* detail);
    class Stream;
    /// Posts, and gives the stream what comes until the connection ends, or end() is called: no
    /// error, or what kept it from beginning, which has until `deadline`.
    awaitable<error_code> follow(std::shared_ptr<Stream>, std::string path, std::string body,
                                 boot_clock::time_point deadline);
    static std::shared_ptr<Stream> make_stream(std::function<void(std::string_view)> piece);
    static void end(Stream&) noexcept;

    /// Ends every connection; nothing is posted any more.
    void close() noexcept;
    bool closed() const noexcept { return closed_; }
    std::size_t size() const noexcept { return shared_->options.hosts.size(); }

private:
    struct Connection;
    using ConnectionPtr = std::shared_ptr<Connection>;
    struct Turn;
    awaitable<Answer> send(std::string path, std::string body, boot_clock::time_point deadline,
                           std::string* detail);
    /// Gets a token for the user. Those that ask meanwhile wait for the same one.
    awaitable<error_code> authenticate(boot_clock::time_point deadline, std::string* detail);
    /// False: the deadline came first.
    awaitable<bool> turn(boot_clock::time_point deadline);
    void give_turn();
    awaitable<error_code> connect(ConnectionPtr, boot_clock::time_point deadline,
                                  std::string* detail);
    awaitable<error_code> exchange(ConnectionPtr, const std::string& path, const std::string& body,
                                   boot_clock::time_point deadline, Answer&, std::string* detail);
    void leave(std::size_t member);
    void drop_idle() noexcept;

    std::shared_ptr<Shared> shared_;
    const std::unique_ptr<tls::Context> tls_;  ///< null: none
    std::string token_;                        ///< stands for the user; empty: none yet
    bool authenticating_ = false, no_users_ = false;
    spi::net::Gate authenticated_;
    std::size_t at_ = 0;  ///< the member that is asked
    std::vector<ConnectionPtr> idle_, all_;
    std::deque<std::shared_ptr<Turn>> waiting_;
    std::size_t under_way_ = 0;
    bool closed_ = false;
};

}  // namespace holdfast::etcd
