// ZooKeeper's wire protocol, as far as its servers and those that question them have it in common:
// big-endian numbers, texts with their length, and the numbers of requests and events.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::sim::wire {

/// Errors: std::out_of_range where bytes are missing.
class Reader {
public:
    explicit Reader(std::string_view bytes) : bytes_(bytes) {}
    std::int64_t number(std::size_t size) {
        std::uint64_t n = 0;
        for (std::size_t i = 0; i < size; ++i)
            n = n << 8U | static_cast<unsigned char>(bytes_.at(at_++));
        return size == 4 ? static_cast<std::int32_t>(n) : static_cast<std::int64_t>(n);
    }
    std::int32_t int32() { return static_cast<std::int32_t>(number(4)); }
    std::int64_t int64() { return number(8); }
    bool flag() { return number(1) != 0; }
    std::string text() {
        const std::int32_t size = int32();
        if (size <= 0) return {};
        std::string out(bytes_.substr(at_, static_cast<std::size_t>(size)));
        at_ += out.size();
        return out;
    }
    std::vector<std::string> texts() {
        std::vector<std::string> out;
        for (std::int32_t n = int32(); n > 0; --n)
            out.push_back(text());
        return out;
    }
    void acl() {
        for (std::int32_t n = int32(); n > 0; --n) {
            int32();
            text();
            text();
        }
    }
    bool done() const noexcept { return at_ >= bytes_.size(); }

private:
    std::string_view bytes_;
    std::size_t at_ = 0;
};

class Writer {
public:
    Writer& int32(std::int32_t n) { return number(static_cast<std::uint32_t>(n), 4); }
    Writer& int64(std::int64_t n) { return number(static_cast<std::uint64_t>(n), 8); }
    Writer& flag(bool b) { return number(b ? 1U : 0U, 1); }
    Writer& text(std::string_view s) {
        int32(static_cast<std::int32_t>(s.size()));
        bytes += s;
        return *this;
    }
    Writer& texts(const std::vector<std::string>& all) {
        int32(static_cast<std::int32_t>(all.size()));
        for (const std::string& s : all)
            text(s);
        return *this;
    }
    std::string bytes;

private:
    Writer& number(std::uint64_t n, unsigned size) {
        for (unsigned i = size; i-- > 0;)
            bytes += static_cast<char>(n >> 8U * i & 255U);
        return *this;
    }
};

inline std::string framed(const std::string& body) {
    Writer w;
    w.text(body);
    return w.bytes;
}

enum Type : std::int32_t {
    create = 1,
    remove = 2,
    exists = 3,
    get_data = 4,
    set_data = 5,
    get_children = 8,
    sync = 9,
    ping = 11,
    multi = 14,
    create2 = 15,
    remove_watches = 18,
    create_container = 19,
    close_session = -11,
    set_watches_again = 101
};
enum Event : std::int32_t { created = 1, deleted = 2, changed = 3, child_changed = 4 };
inline constexpr std::int32_t xid_of_pings = -2, xid_of_events = -1;

}  // namespace holdfast::sim::wire
