// Fuzzes what is made of ZooKeeper's answers: the data and the names of nodes, the replies to
// four-letter words, the list of servers. The first byte chooses which. The wire protocol itself is
// read by ZooKeeper's client library.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "checks.hpp"
#include "holdfast/spi/common_checks.hpp"
#include "nodes.hpp"

using namespace holdfast::zookeeper;
namespace spi = holdfast::spi;

namespace {

void require(bool so) {
    if (!so) std::abort();
}

void data(std::string_view text) {
    if (const auto limit = read_limit(text)) require(read_limit(limit_text(*limit)) == limit);
    const auto read = read_data(text);
    if (!read) return;
    require(!read->owner.empty() && read->ttl_ms + read->delay_ms >= 0);
    const auto again = read_data(write_data(*read));
    require(again && again->owner == read->owner && again->ttl_ms == read->ttl_ms &&
            again->delay_ms == read->delay_ms && again->permits == read->permits &&
            again->revoked == read->revoked && again->shared == read->shared &&
            again->asked == read->asked);
}

void name(std::string_view text) {
    const auto rank = rank_of(text);
    require(sequence_of(text).has_value() == rank.has_value());
    require(!stands_in_line(text) || rank);
    require(is_stranger(text, false) || is_stranger(text, true) || !rank ||
            rank->recipe == Recipe::permit || stands_in_line(text));
    require(!guid_of(text).empty() || text.empty());
    static_cast<void>(words_for_stranger(text));
    if (const auto plain = unescape(text)) require(unescape(escape(*plain, true)) == plain);
}

/// Every check judges whatever the servers say.
void checks(spi::Facts facts) {
    facts.set("tick_ms", 3000);
    facts.set("ttl_ms", 10'000);
    facts.set("listed", 3);
    for (const auto& all : {checks_of_servers(), checks_of_ensembles()}) {
        std::vector<holdfast::Finding> found;
        spi::judge(all, facts, found);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
    if (size == 0) return 0;
    const std::string_view text(reinterpret_cast<const char*>(bytes) + 1, size - 1);
    spi::Facts facts;
    switch (bytes[0] % 5) {
        case 0:
            data(text);
            break;
        case 1:
            name(text);
            break;
        case 2:
            facts.set("srvr", std::string(text));
            spi::note_lines(facts, text, ": ");
            checks(std::move(facts));
            break;
        case 3:
            spi::note_lines(facts, text, "=");
            checks(std::move(facts));
            break;
        default:
            note_config(facts, text);
            checks(std::move(facts));
    }
    return 0;
}
