// Every statement of this backend; their texts are in statements.sql and session.sql. The README
// prints those of an acquire and a release, and a test compares them with what the server really
// ran.
//
// A statement on one row is a transaction of its own. Several go in one packet, between BEGIN and
// COMMIT, so that they are synced to the disk once. Time is the server's clock when it is read.
// Those that are run again and again by themselves are prepared: parsing takes the server longer
// than a grant.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "../common/table_format.hpp"

namespace holdfast::mysql {

enum class Sql : std::uint8_t {
    grant,    ///< owner, ttl us, name, owner, owner, deadline us -> 8 * token + previous + 1 as the
              ///< insert id
    release,  ///< mark, name, owner, token
    renew,    ///< ttl us, name, owner, token
    withdraw,  ///< owner (3 times), ghost as it stands in `gone`, name, longest `gone` -> as the
               ///< insert id 1, or 2 if the row has more than the columns of a mutex; 4 more if it
               ///< held it
    ensure,    ///< name: makes a missing row
    read,      ///< names -> see Table::read
    write,     ///< owner, token, expires, acquired, mark, previous, revoked, text, gone, name,
               ///< version, deadline us: for a row that still has that version
    list,      ///< prefix, prefix, limit -> names
    record,    ///< name, text: keeps it in a row of its own
    recorded,  ///< name -> text, for a day
    sweep_window,  ///< name -> last of the next thousand names, how many there are
    sweep,         ///< name, last name: deletes free rows that nobody has used for a day
    settings,
    isolation,
    hello,
    real_time,
    table_facts,
    table_key,
    variables,
    replicas,
    counts,
    connections,
    grants,
    begin,
    commit,
    create
};

inline constexpr sql::TableFormat table_format{"mysql", 1};

/// How many statements a session prepares, for each of two ways to run them: the first ones, on one
/// row, without rows in the answer.
inline constexpr std::size_t most_prepared = static_cast<std::size_t>(Sql::renew) + 1;

/// Of a statement: a number, a text, or several with commas between them.
using Value = std::variant<std::int64_t, std::string, std::vector<std::string>>;
/// As SQL has it, with texts in quotes.
std::string literal(const Value&);

/// A statement and its values.
struct Filled {
    Sql sql;
    std::vector<Value> values;
};

/// With question marks in the place of values.
const std::string& text_of(Sql) noexcept;
/// Of the answer; 0: it has no rows.
int columns_of(Sql) noexcept;

/// Statements that are sent together.
struct Packet {
    std::vector<Filled> statements;

    Packet() = default;
    explicit Packet(Sql s, std::initializer_list<Value> values = {}) { add(s, values); }
    void add(Sql s, std::initializer_list<Value> values = {}) { statements.push_back({s, values}); }
    /// `named`: those that a session prepares are run by the names of names_prepared().
    std::string text(bool named = false) const;
};

/// Gives the statements that a session prepares their names.
std::string names_prepared();

/// The statement that makes the table, for people as well.
std::string create_table();

}  // namespace holdfast::mysql
