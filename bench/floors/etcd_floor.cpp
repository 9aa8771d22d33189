#include "floors/etcd_floor.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cerrno>
#include <holdfast/spi/owner.hpp>
#include <random>
#include <string_view>

#include "bench.hpp"

namespace holdfast::bench {

namespace {

namespace http = boost::beast::http;
using asio::ip::tcp;

constexpr std::size_t names_of_a_request = 32, random_part = 22;
constexpr milliseconds young_for{500};
constexpr std::string_view root = "/holdfast/", lease_seconds = "10";

std::string base64(std::string_view bytes) {
    constexpr std::string_view digits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string out((bytes.size() + 2) / 3 * 4, '=');
    for (std::size_t i = 0, to = 0; i < bytes.size(); i += 3, to += 4) {
        unsigned group = 0;
        for (std::size_t k = i; k < i + 3; ++k)
            group = group << 8U | (k < bytes.size() ? static_cast<unsigned char>(bytes[k]) : 0U);
        for (unsigned k = 0; k < 4 && i + k <= bytes.size(); ++k)
            out[to + k] = digits[group >> (18 - 6 * k) & 63U];
    }
    return out;
}

/// The end of the range of all keys that begin so.
std::string after(std::string prefix) {
    prefix.back() = static_cast<char>(prefix.back() + 1);
    return prefix;
}

std::string line_of(std::size_t name) {
    return std::string(root) + EtcdFloor::lock_name(name) + "/";
}

/// The value of the first `"name":"VALUE"`; empty where there is none.
std::string text_of(std::string_view body, std::string_view name) {
    const auto mark = '"' + std::string(name) + "\":\"";
    const auto at = body.find(mark);
    if (at == body.npos) return {};
    const auto begin = at + mark.size();
    return std::string(body.substr(begin, body.find('"', begin) - begin));
}

std::size_t count_of(std::string_view body, std::string_view words) {
    std::size_t n = 0;
    for (auto at = body.find(words); at != body.npos; at = body.find(words, at + words.size()))
        ++n;
    return n;
}

/// `"key":"..."` and what follows, in base64 where etcd wants it so.
std::string key(std::string_view name) {
    return R"({"key":")" + base64(name) + '"';
}
std::string none_there(const std::string& begun) {
    return begun + R"(,"target":"CREATE","result":"EQUAL","create_revision":"0"})";
}

/// As the backend's README has it.
std::string take(const std::string& line, const std::string& owner, const std::string& lease) {
    const std::string mine = key(line + owner);
    const std::string range = key(line) + R"(,"range_end":")" + base64(after(line)) + '"';
    const std::string alone = key(line.substr(0, line.size() - 1));
    const std::string free =
        none_there(key(std::string(root) + "%gone/" + owner)) + ',' + none_there(alone) + ',';
    const std::string put = R"([{"request_put":)" + mine + R"(,"value":")" +
                            base64("hf1 " + owner) + R"(","lease":")" + lease + R"("}}])";
    return R"({"compare":[)" + free + none_there(range) + R"(],"success":)" + put +
           R"(,"failure":[{"request_txn":{"compare":[)" + free + none_there(mine) +
           R"(],"success":)" + put + R"(,"failure":[{"request_range":)" + mine +
           R"(}},{"request_range":)" + alone + R"(}}]}},{"request_range":)" + range + "}}]}";
}

std::string release(const std::string& line, const std::string& owner,
                    const std::string& revision) {
    const std::string mine = key(line + owner);
    return R"({"compare":[)" + mine + R"(,"target":"CREATE","result":"EQUAL","create_revision":")" +
           revision + R"("}],"success":[{"request_delete_range":)" + mine +
           R"(,"prev_kv":true}}]})";
}

/// Alone as it is; several as transactions inside of one.
std::string together(const std::vector<std::string>& all) {
    if (all.size() == 1) return all.front();
    std::string out = R"({"success":[)";
    for (const std::string& one : all)
        out += (&one == &all.front() ? R"({"request_txn":)" : R"(,{"request_txn":)") + one + '}';
    return out + "]}";
}

/// A kept connection with at most one request under way.
class Connection {
public:
    explicit Connection(std::uint16_t port)
        : host_("127.0.0.1:" + std::to_string(port)), socket_(io_) {
        socket_.connect({asio::ip::address_v4::loopback(), port});
        socket_.set_option(tcp::no_delay(true));
        const timeval ten_seconds{10, 0};
        setsockopt(handle(), SOL_SOCKET, SO_RCVTIMEO, &ten_seconds, sizeof ten_seconds);
    }
    int handle() { return socket_.native_handle(); }

    void send(const char* path, const std::string& body) {
        request_ =
            std::string("POST /v3/") + path + " HTTP/1.1\r\nHost: " + host_ +
            "\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
            "\r\n\r\n";
        request_ += body;
        for (std::size_t done = 0; done < request_.size();) {
            const ssize_t sent =
                ::send(handle(), request_.data() + done, request_.size() - done, MSG_NOSIGNAL);
            if (sent < 0) throw SelfCheck("bare HTTP: the connection broke");
            done += static_cast<std::size_t>(sent);
        }
    }
    /// The body of the answer, whose rest is waited for. Errors: SelfCheck when it is no success.
    std::string receive() {
        http::response_parser<http::string_body> parser;
        parser.eager(true);
        while (!parser.is_done()) {
            boost::system::error_code ec = http::error::need_more;
            if (buffer_.size() > 0) buffer_.consume(parser.put(buffer_.data(), ec));
            if (ec && ec != http::error::need_more) throw SelfCheck("bare HTTP: " + ec.message());
            if (parser.is_done()) break;
            if (ec) read_some();
        }
        const auto& answer = parser.get();
        if (answer.result_int() != 200)
            throw SelfCheck("bare HTTP: " + std::to_string(answer.result_int()) + ": " +
                            answer.body().substr(0, 200));
        return parser.release().body();
    }

private:
    void read_some() {
        const auto space = buffer_.prepare(65536);
        const ssize_t got = recv(handle(), space.data(), space.size(), 0);
        if (got <= 0)
            throw SelfCheck(got < 0 && errno == EAGAIN ? "bare HTTP: no answer for 10 s"
                                                       : "bare HTTP: the connection broke");
        buffer_.commit(static_cast<std::size_t>(got));
    }

    std::string host_, request_;
    asio::io_context io_;
    tcp::socket socket_;
    boost::beast::flat_buffer buffer_;
};

}  // namespace

/// Some names, which go through their steps together.
struct EtcdFloor::Share {
    Share(std::uint16_t port, std::size_t from, std::size_t count)
        : connection(port), first(from), owners(count) {}
    enum class Step : std::uint8_t { idle, leasing, leased, taking, taken, freeing };
    Connection connection;
    std::size_t first;
    std::vector<std::string> owners;
    std::string revision;  ///< at which their keys were made
    Step step = Step::idle;
};

std::string EtcdFloor::lock_name(std::size_t i) {
    return "bench-floor-" + std::to_string(i);
}

EtcdFloor::EtcdFloor(std::uint16_t port, std::size_t names)
    : owner_suffix_(spi::make_owner({}).substr(random_part)), counter_(std::random_device{}()) {
    for (std::size_t i = 0; i < names; i += names_of_a_request)
        shares_.push_back(
            std::make_unique<Share>(port, i, std::min(names_of_a_request, names - i)));
    for (const auto& share : shares_)
        while (share->step != Share::Step::taken) {
            go_on(*share);
            answered(*share);
        }
    prove("taken", names);
    for (const auto& share : shares_) {
        go_on(*share);
        answered(*share);
    }
    prove("freed", 0);
}

EtcdFloor::~EtcdFloor() = default;

const std::string& EtcdFloor::owner() const {
    return shares_.front()->owners.front();
}

/// As long as one of Holdfast's, and different in each cycle.
std::string EtcdFloor::next_owner() {
    std::string random(random_part, 'A');
    auto n = ++counter_;
    for (auto digit = random.rbegin(); n > 0; n /= 10)
        *digit++ = static_cast<char>('0' + n % 10);
    return random + owner_suffix_;
}

bool EtcdFloor::young() const {
    return !lease_.empty() && Clock::now() - leased_ < young_for;
}

void EtcdFloor::ask_for_lease(Share& share) {
    leased_ = Clock::now();  // the others go on with the one before meanwhile
    share.connection.send("lease/grant", R"({"TTL":")" + std::string(lease_seconds) + R"("})");
    share.step = Share::Step::leasing;
}

void EtcdFloor::ask_to_take(Share& share) {
    std::vector<std::string> all;
    for (std::size_t i = 0; i < share.owners.size(); ++i) {
        share.owners[i] = next_owner();
        all.push_back(take(line_of(share.first + i), share.owners[i], lease_));
    }
    share.connection.send("kv/txn", together(all));
    share.step = Share::Step::taking;
}

void EtcdFloor::ask_to_free(Share& share) {
    std::vector<std::string> all;
    for (std::size_t i = 0; i < share.owners.size(); ++i)
        all.push_back(release(line_of(share.first + i), share.owners[i], share.revision));
    share.connection.send("kv/txn", together(all));
    share.step = Share::Step::freeing;
}

/// Sends what comes next.
void EtcdFloor::go_on(Share& share) {
    if (share.step == Share::Step::taken)
        ask_to_free(share);
    else if (share.step == Share::Step::leased || young())
        ask_to_take(share);
    else
        ask_for_lease(share);
}

/// Waits for the answer; how many cycles have ended with it.
std::size_t EtcdFloor::answered(Share& share) {
    const std::string body = share.connection.receive();
    const std::size_t names = share.owners.size(), transactions = names == 1 ? 1 : names + 1;
    const auto well = [&](bool yes, const char* what) {
        if (!yes) throw SelfCheck(std::string("bare HTTP: ") + what + ": " + body.substr(0, 200));
    };
    if (share.step == Share::Step::leasing) {
        lease_ = text_of(body, "ID");
        well(!lease_.empty(), "no lease was granted");
        share.step = Share::Step::leased;
        return 0;
    }
    well(count_of(body, R"("succeeded":true)") == transactions, "a lock was not as it was left");
    if (share.step == Share::Step::taking) {
        share.revision = text_of(body, "revision");
        share.step = Share::Step::taken;
        return 0;
    }
    well(count_of(body, R"("deleted":"1")") == names, "a key was not deleted");
    share.step = Share::Step::idle;
    return names;
}

/// Whether so many names have a key.
void EtcdFloor::prove(const char* step, std::size_t keys) {
    const std::string all = std::string(root) + "bench-floor-";
    Connection& connection = shares_.front()->connection;
    connection.send("kv/range", key(all) + R"(,"range_end":")" + base64(after(all)) +
                                    R"(","count_only":true})");
    const std::string there = text_of(connection.receive(), "count");
    if ((there.empty() ? "0" : there) != std::to_string(keys))
        throw SelfCheck("bare HTTP: " + std::to_string(keys) + " names should have a key " + step +
                        ", and " + there + " have");
}

void EtcdFloor::cycle() {
    Share& share = *shares_.front();
    do {
        go_on(share);
        answered(share);
    } while (share.step != Share::Step::idle);
}

std::size_t EtcdFloor::run_for(double seconds) {
    const auto until = Clock::now() + in_seconds(seconds);
    if (!young()) {  // it may even have ended: all wait for a new one
        ask_for_lease(*shares_.front());
        answered(*shares_.front());
    }
    std::size_t done = 0, under_way = shares_.size();
    std::vector<pollfd> waiting;
    for (const auto& share : shares_) {
        go_on(*share);
        waiting.push_back({share->connection.handle(), POLLIN, 0});
    }
    while (under_way > 0) {
        if (poll(waiting.data(), waiting.size(), 10'000) <= 0)
            throw SelfCheck("bare HTTP: no answer for 10 s");
        for (std::size_t i = 0; i < shares_.size(); ++i) {
            if (waiting[i].revents == 0) continue;
            Share& share = *shares_[i];
            done += answered(share);
            if (share.step != Share::Step::idle || Clock::now() < until) {
                go_on(share);
            } else {
                waiting[i].fd = -1;
                --under_way;
            }
        }
    }
    return done;
}

}  // namespace holdfast::bench
