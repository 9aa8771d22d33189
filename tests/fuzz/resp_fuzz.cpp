// Fuzzes the reader of the Redis protocol, and what a cluster says in it. Build with clang++
// -fsanitize=fuzzer,address and link backends/resp/codec.cpp, backends/redis/cluster/slots.cpp and
// hiredis; the first byte chooses how the rest is cut into
// pieces.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "cluster/slots.hpp"
#include "codec.hpp"

namespace {

/// As CLUSTER SLOTS, CLUSTER NODES and a redirection.
void read_slots(const holdfast::resp::Reply& reply) {
    using namespace holdfast::redis;
    if (reply.is_text() || reply.is(holdfast::resp::Reply::Type::error)) {
        (void)epochs_of(reply.text);
        (void)moving_slots_of(reply.text);
        if (const auto to = redirect_of(reply.text); to && to->slot >= slot_count) std::abort();
    }
    const auto ranges = ranges_of(reply, "asked");
    if (!ranges) return;
    const ClusterView view{*ranges, {}};
    const auto table = merged({&view, 1});
    for (const auto owner : table.owner)
        if (owner != SlotTable::none && owner >= table.primaries.size()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const std::size_t piece = std::size_t{data[0]} + 1;
    std::string_view left(reinterpret_cast<const char*>(data) + 1, size - 1);
    holdfast::resp::Codec codec(64U << 10U);
    while (!left.empty()) {
        const auto part = left.substr(0, std::min(piece, left.size()));
        left.remove_prefix(part.size());
        if (!codec.feed(part)) return 0;
        for (;;) {
            const auto next = codec.next();
            if (next == holdfast::resp::Codec::Next::broken) {
                // Broken for good.
                if (codec.feed("+OK\r\n") && codec.next() != next) std::abort();
                return 0;
            }
            if (next == holdfast::resp::Codec::Next::more) break;
            if (codec.reply().items().size() != codec.reply().count) std::abort();
            read_slots(codec.reply());
        }
    }
    return 0;
}
