// A server that speaks MySQL's protocol and answers logins and statements with anything.
#pragma once
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "../sql/mangle.hpp"
#include "dialect.hpp"

namespace mysql_tests {

// --- the protocol: packets with a length of three bytes and a number, lowest byte first

inline std::string low_first(std::uint32_t n, int bytes) {
    std::string out;
    for (; bytes-- > 0; n >>= 8U)
        out += static_cast<char>(n);
    return out;
}
/// A text with its length, which is below 251.
inline std::string counted(const std::string& text) {
    return low_first(static_cast<std::uint32_t>(text.size()), 1) + text;
}
/// The bodies of packets that are sent together.
using Packets = std::vector<std::string>;

inline const std::string more_follows("\x0a\0", 2), the_last("\x02\0", 2);  // of a server's status

inline Packets ok(const std::string& status = the_last) {
    return {std::string("\0\0\0", 3) + status + std::string("\0\0", 2)};
}
using Cells = std::vector<std::optional<std::string>>;
inline Packets rows(const std::vector<Cells>& all, unsigned columns,
                    const std::string& status = the_last) {
    Packets out{low_first(columns, 1)};
    for (unsigned i = 0; i < columns; ++i) {
        // The kinds of characters, length, type of a text, flags, decimals.
        const std::string type =
            low_first(63, 2) + low_first(1024, 4) + '\xfd' + std::string("\0\0\0\0\0", 5);
        out.push_back(counted("def") + counted("") + counted("") + counted("") +
                      counted("c" + std::to_string(i)) + counted("") + '\x0c' + type);
    }
    const std::string end = std::string("\xfe\0\0", 3);
    out.push_back(end + status);
    for (const Cells& cells : all) {
        std::string row;
        for (const auto& cell : cells)
            row += cell ? counted(*cell) : "\xfb";
        out.push_back(row);
    }
    out.push_back(end + status);
    return out;
}
/// To a statement that has no rows, by this number and with so many values.
inline Packets prepared(std::uint32_t number, unsigned values) {
    Packets out = rows({}, values);
    out.pop_back();
    out[0] = '\0' + low_first(number, 4) + low_first(0, 2) + low_first(values, 2) +
             std::string("\0\0\0", 3);
    return out;
}
inline Packets error(std::uint32_t number) {
    return {'\xff' + low_first(number, 2) + "#HY000no"};
}
inline Packets joined(std::initializer_list<Packets> all) {
    Packets out;
    for (const Packets& one : all)
        out.insert(out.end(), one.begin(), one.end());
    return out;
}

/// What it says, and what it has heard.
struct Hostile {
    Packets login = ok();  ///< the answer to whoever comes
    /// The answers to the first packet of statements, if it is told apart.
    std::function<Packets(const std::string& statements)> introduction;
    Packets answer;  ///< to all others
    /// The same, if they are told apart.
    std::function<Packets(const std::string& statements)> answers{};
    /// The answers to what is prepared and executed; none: it hangs up.
    std::function<Packets(const std::string& body)> prepared{};
    bool tls = false;  ///< it says that it could
};

inline std::string greeting(bool tls) {
    // A password proven by a scramble, several statements and results, a database to begin with,
    // and ways to prove a password that are named.
    const std::uint32_t can = 0x003f'f7dfU & ~0x0800U, with_tls = can | 0x0800U;
    const std::uint32_t all = tls ? with_tls : can;
    return std::string("\x0a") + "10.11.6-MariaDB" + '\0' + low_first(4242, 4) + "12345678" + '\0' +
           low_first(all & 0xffffU, 2) + '\x21' + the_last + low_first(all >> 16U, 2) + '\x15' +
           std::string(10, '\0') + "123456789012" + '\0' + "mysql_native_password" + '\0';
}

/// Serves one connection until the client goes. `heard` gets the bodies of its packets.
inline void serve(const Hostile& how, Tcp::socket& socket,
                  const std::function<void(const std::string&)>& heard = {}) {
    namespace asio = boost::asio;
    std::uint32_t number = 0;
    const auto give = [&](const Packets& packets) {
        std::string bytes;
        for (const std::string& body : packets)
            bytes += low_first(static_cast<std::uint32_t>(body.size()), 3) +
                     low_first(number++, 1) + body;
        asio::write(socket, asio::buffer(bytes));
    };
    const auto take = [&] {
        std::array<unsigned char, 4> head{};
        asio::read(socket, asio::buffer(head));
        std::string body(head[0] + (std::size_t{head[1]} << 8U) + (std::size_t{head[2]} << 16U),
                         '\0');
        asio::read(socket, asio::buffer(body));
        number = head[3] + 1U;
        if (heard) heard(body);
        return body;
    };
    give({greeting(how.tls)});
    take();
    give(how.login);
    for (bool first = true;;) {
        const std::string body = take();
        if (body.empty() || body[0] == '\x01') return;  // it leaves
        if (how.prepared && (body[0] == '\x16' || body[0] == '\x17')) {
            const Packets answer = how.prepared(body);
            if (answer.empty()) return;
            give(answer);
        }
        if (body[0] != '\x03') continue;  // the rest of a login, or of a file
        const bool introduces = std::exchange(first, false) && how.introduction;
        if (introduces)
            give(how.introduction(body.substr(1)));
        else
            give(how.answers ? how.answers(body.substr(1)) : how.answer);
    }
}

}  // namespace mysql_tests
