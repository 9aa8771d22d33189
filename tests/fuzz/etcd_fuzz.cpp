// Fuzzes what a member sends: frames of HTTP/2 as they come, or what an answer's data frame has
// inside; then the messages, lines of keys and their entries. The first byte chooses, and how large
// the pieces are in which it comes.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "errors.hpp"
#include "etcd.pb.h"
#include "grpc_client.hpp"
#include "keys.hpp"
#include "messages.hpp"
#include "methods.hpp"
#include "unit_queue.hpp"

namespace etcd = holdfast::etcd;
namespace wire = etcd::wire;

namespace {

void must(bool so) {
    if (!so) std::abort();
}

void read(const etcd::Result& r) {
    etcd::UnitQueue row(r.found);
    for (const etcd::KeyValue& kv : r.found) {
        if (const auto entry = etcd::read_entry(kv.value)) {
            must(etcd::read_entry(etcd::write_entry(*entry))->owner == entry->owner);
            must(holdfast::boot_clock::time_point() + entry->lock_delay >=
                 holdfast::boot_clock::time_point());
        }
        row.remove(kv.created);
    }
    must(row.empty());
    for (const etcd::Result& inner : r.results)
        read(inner);
}

void read(std::string_view bytes) {
    const int size = static_cast<int>(bytes.size());
    etcd::rpc::TxnResponse transaction;
    if (transaction.ParseFromArray(bytes.data(), size)) read(etcd::read_transaction(transaction));
    etcd::rpc::RangeResponse range;
    if (range.ParseFromArray(bytes.data(), size)) read(etcd::read_range(range));
    etcd::rpc::WatchResponse watch;
    (void)watch.ParseFromArray(bytes.data(), size);
}

/// Told once that it has ended, and nothing after that.
struct Told final : wire::Call {
    explicit Told(std::size_t l) : longest(l) {}
    void message(std::string_view bytes) override {
        must(!over && bytes.size() <= longest);
        read(bytes);
    }
    void ended(const wire::End& end) override {
        must(!over);
        over = true;
        must(end.by != wire::End::By::status || end.status >= 0);
        (void)etcd::from_status(end.status, end.words);
    }
    const std::size_t longest;
    bool over = false;
};

std::string frame(char type, char flags, std::string_view bytes) {
    std::string out;
    for (const unsigned shift : {16U, 8U, 0U})
        out += static_cast<char>(bytes.size() >> shift & 255U);
    return (out + type + flags).append({0, 0, 0, 1}).append(bytes);
}

/// A member's settings, and an answer to the first call whose data are these.
std::string answer_of(std::string_view data) {
    constexpr char is_data = 0, is_headers = 1, ends_headers = 4, ends_stream = 1;
    constexpr std::size_t most = 16384;  // of a frame
    std::string out("\0\0\0\4\0\0\0\0\0", 9);
    out += frame(is_headers, ends_headers,
                 "\x88\x5f\x10"
                 "application/grpc");
    for (; !data.empty(); data.remove_prefix(std::min(most, data.size())))
        out += frame(is_data, 0, data.substr(0, most));
    using namespace std::string_view_literals;
    return out + frame(is_headers, ends_headers | ends_stream,
                       "\0\x0bgrpc-status\x01"
                       "0"sv);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const std::string_view given(reinterpret_cast<const char*>(data) + 1, size - 1);
    const std::string bytes = data[0] % 2 == 0 ? std::string(given) : answer_of(given);
    const std::size_t piece = data[0] < 2 ? bytes.size() + 1 : data[0];

    constexpr std::size_t longest = 1024;
    Told asked(longest), follows(2 * longest);
    wire::Client client("member:2379", false);
    const auto send = [&] {
        std::string out;
        client.send(out);
    };
    client.call({.path = etcd::method::txn, .longest = asked.longest}, etcd::rpc::TxnRequest(),
                asked);
    client.call({.path = etcd::method::watch, .longest = follows.longest, .stays_open = true},
                etcd::rpc::WatchRequest(), follows);
    send();
    bool goes_on = true;
    for (std::size_t at = 0; at < bytes.size() && goes_on; at += piece) {
        goes_on = client.receive(std::string_view(bytes).substr(at, piece));
        must(goes_on == client.trouble().empty());
        if (goes_on) send();
    }
    client.broke("the end");
    must(client.calls() == 0 && asked.over && follows.over);
    (void)etcd::read_entry(std::string(given));
    return 0;
}
