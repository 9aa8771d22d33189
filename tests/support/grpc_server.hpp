// A server's side of gRPC, without a socket: for members of etcd that a test plays.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "session.hpp"

namespace holdfast::test {

class GrpcServer final : public etcd::wire::Session {
public:
    using Id = std::int32_t;
    struct Head {
        std::string path, token, timeout, type;
    };
    /// What a client says. Answers may be given at once or later.
    class Handler {
    public:
        /// A message of a call. The first one comes with the whole head.
        virtual void asked(Id, const Head&, std::string_view message) = 0;
        /// The client sends no more.
        virtual void half_closed(Id) {}
        /// It was reset, or has been answered in full.
        virtual void ended(Id) {}

    protected:
        ~Handler() = default;
    };
    explicit GrpcServer(Handler& h) : Session(Role::server), handler_(h) {}

    /// Whether the client still waits for it.
    bool waits(Id id) const { return streams().contains(id); }
    void reply(Id id, const google::protobuf::MessageLite& message) {
        if (Call* const c = begun(id)) write(*c, message);
    }
    /// As it comes: any bytes as the message.
    void reply(Id id, std::string_view message) {
        if (Call* const c = begun(id)) write(*c, message);
    }
    void end(Id id, int status = 0, const std::string& words = {}) {
        Call* const c = find(id);
        if (c == nullptr) return;
        const std::string number = std::to_string(status);
        const std::string said = etcd::wire::percent_encoded(words);
        if (!c->answered)  // in one frame, as Go's server does
            return answer(*c,
                          {{":status", "200"},
                           {"content-type", "application/grpc"},
                           {"grpc-status", number},
                           {"grpc-message", said}},
                          true);
        std::vector<std::pair<std::string, std::string>> trailers{{"grpc-status", number}};
        if (!said.empty()) trailers.emplace_back("grpc-message", said);
        finish(*c, std::move(trailers));
    }
    /// An answer of something else that speaks HTTP/2.
    void foreign(Id id, const std::string& status, const std::string& type) {
        if (Call* const c = find(id))
            answer(*c, {{":status", status}, {"content-type", type}}, true);
    }
    void reset_call(Id id, std::uint32_t code) {
        if (Call* const c = find(id)) reset(*c, code);
    }
    using Session::go_away;

private:
    struct Call final : etcd::wire::Stream {
        Head head;
        bool answered = false;
    };
    Call* find(Id id) const {
        const auto at = streams().find(id);
        return at == streams().end() ? nullptr : static_cast<Call*>(at->second.get());
    }
    Call* begun(Id id) {
        Call* const c = find(id);
        if (c != nullptr && !std::exchange(c->answered, true))
            answer(*c, {{":status", "200"}, {"content-type", "application/grpc"}}, false);
        return c;
    }

    std::unique_ptr<etcd::wire::Stream> make_stream() override { return std::make_unique<Call>(); }
    void header(etcd::wire::Stream& s, std::string_view name, std::string_view value) override {
        Head& h = static_cast<Call&>(s).head;
        if (name == ":path") h.path = value;
        if (name == "authorization") h.token = value;
        if (name == "grpc-timeout") h.timeout = value;
        if (name == "content-type") h.type = value;
    }
    void headed(etcd::wire::Stream&, bool) override {}
    void message(etcd::wire::Stream& s, std::string_view bytes) override {
        handler_.asked(s.id, static_cast<Call&>(s).head, bytes);
    }
    void refuse(etcd::wire::Stream& s, std::string) override { reset(s); }
    void half_closed(etcd::wire::Stream& s) override { handler_.half_closed(s.id); }
    void closed(etcd::wire::Stream& s, std::uint32_t) override { handler_.ended(s.id); }

    Handler& handler_;
};

}  // namespace holdfast::test
