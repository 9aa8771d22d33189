// Fuzzes what reads a member's answers: JSON of etcd's gateway, then lines of keys and their
// entries. The first byte chooses the status of HTTP.
#include <boost/json/object.hpp>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "errors.hpp"
#include "keys.hpp"
#include "messages.hpp"
#include "unit_queue.hpp"

namespace etcd = holdfast::etcd;

namespace {

void read(const etcd::Result& r) {
    etcd::UnitQueue row(r.found);
    for (const etcd::KeyValue& kv : r.found) {
        if (const auto entry = etcd::read_entry(kv.value))
            if (etcd::read_entry(etcd::write_entry(*entry))->owner != entry->owner) std::abort();
        row.remove(kv.created);
    }
    if (!row.empty()) std::abort();
    for (const etcd::Result& inner : r.results)
        read(inner);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    constexpr unsigned statuses[] = {200, 404, 503, 400};
    const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
    boost::json::object answer;
    std::string words;
    const auto why = etcd::read_answer(statuses[data[0] % 4], bytes, answer, words);
    if (why && !answer.empty() && why != etcd::make(etcd::Error::protocol)) std::abort();
    (void)etcd::revision_of(answer);
    (void)etcd::cluster_of(answer);
    read(etcd::read_transaction(answer));
    read(etcd::read_range(answer));
    const std::string all(bytes);
    if (etcd::from_base64(etcd::base64(all)) != all) std::abort();
    (void)etcd::read_entry(all);
    return 0;
}
