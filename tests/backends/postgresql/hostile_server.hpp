// A server that speaks PostgreSQL's protocol and answers statements with anything.
#pragma once
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../sql/mangle.hpp"
#include "dialect.hpp"

namespace postgresql_tests {

// --- messages of the protocol

inline std::string in_bytes(std::uint32_t n, int bytes) {
    std::string out;
    while (bytes-- > 0)
        out += static_cast<char>(n >> (8U * static_cast<unsigned>(bytes)));
    return out;
}
inline std::string message(char kind, const std::string& body) {
    return kind + in_bytes(static_cast<std::uint32_t>(body.size() + 4), 4) + body;
}
inline std::string row_description(unsigned columns) {
    std::string body = in_bytes(columns, 2);
    for (unsigned i = 0; i < columns; ++i)
        body += "c" + std::to_string(i) + '\0' + in_bytes(0, 4) + in_bytes(0, 2) + in_bytes(25, 4) +
                in_bytes(0xFFFF, 2) + in_bytes(0xFFFF'FFFF, 4) + in_bytes(0, 2);
    return message('T', body);
}
using Cells = std::vector<std::optional<std::string>>;
inline std::string data_row(const Cells& cells) {
    std::string body = in_bytes(static_cast<std::uint32_t>(cells.size()), 2);
    for (const auto& cell : cells)
        body += cell ? in_bytes(static_cast<std::uint32_t>(cell->size()), 4) + *cell
                     : in_bytes(0xFFFF'FFFF, 4);
    return message('D', body);
}
inline std::string rows(const std::vector<Cells>& all, unsigned columns) {
    std::string out = row_description(columns);
    for (const Cells& cells : all)
        out += data_row(cells);
    return out + message('C', std::string("SELECT 1") + '\0');
}
inline std::string notice(const std::string& severity, const std::string& text) {
    return message('N', "S" + severity + '\0' + "V" + severity + '\0' + "C01000" + '\0' + "M" +
                            text + '\0' + '\0');
}

/// A server that lets everybody in.
struct Hostile {
    std::string greeting;     ///< sent when the client is let in
    bool introduces = false;  ///< answers the first statement of a connection as a server does
    std::string answer;       ///< to all other statements
    std::string comment;      ///< of the table
};
inline void serve(const Hostile& how, Tcp::socket& socket) {
    namespace asio = boost::asio;
    const auto take = [&](std::size_t n) {
        std::string bytes(n, '\0');
        asio::read(socket, asio::buffer(bytes));
        return bytes;
    };
    const auto number = [&] {
        std::uint32_t n = 0;
        for (const char c : take(4))
            n = n << 8U | static_cast<unsigned char>(c);
        return n;
    };
    const auto give = [&](const std::string& bytes) { asio::write(socket, asio::buffer(bytes)); };
    const std::string ready = message('Z', "I");
    for (;;) {  // it asks for encryption first
        const std::string begin = take(number() - 4);
        if (begin.substr(0, 2) != std::string("\x04\xd2", 2)) break;
        give("N");
    }
    const auto says = [](const std::string& name, const std::string& value) {
        return message('S', name + '\0' + value + '\0');
    };
    give(message('R', in_bytes(0, 4)) + how.greeting + says("server_version", "15.3") +
         says("client_encoding", "UTF8") + says("standard_conforming_strings", "on") +
         message('K', in_bytes(4242, 4) + in_bytes(1, 4)) + ready);
    bool first = true, parsed = false, bound = false;
    for (;;) {
        const char kind = take(1)[0];
        (void)take(number() - 4);
        parsed = parsed || kind == 'P';
        bound = bound || kind == 'B';
        if (kind == 'X') return;
        if (kind != 'S' && kind != 'Q') continue;
        std::string out = parsed ? message('1', "") : "";
        if (bound) out += message('2', "");
        if (kind == 'S' && !bound)
            give(out + ready);  // only prepared
        else if (std::exchange(first, false) && how.introduces)
            give(out +
                 rows({{"4242", "f", "off", "1795475838555088", how.comment, "16400 1", "t", "",
                        "public", ""}},
                      10) +
                 ready);
        else
            give(out + how.answer + ready);
        parsed = bound = false;
    }
}

}  // namespace postgresql_tests
