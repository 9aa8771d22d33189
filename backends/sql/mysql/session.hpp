// One connection of libmariadb: connecting, packets of statements, their answers. It blocks;
// deadlines are up to the caller, who shuts the socket.
#pragma once
#include <mysql.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/spi/failure.hpp"
#include "shared.hpp"
#include "statements.hpp"

namespace holdfast::mysql {

/// The answer to one statement. NULL is an empty text.
struct Result {
    std::uint64_t affected = 0;  ///< rows that were changed
    std::uint64_t id = 0;        ///< what the statement passed to LAST_INSERT_ID()
    std::vector<std::vector<std::string>> rows;

    const std::string& text(std::size_t row, std::size_t column) const {
        return rows.at(row).at(column);
    }
    /// 0 for NULL. Errors: std::exception for a text that is no number.
    std::int64_t number(std::size_t row, std::size_t column) const {
        const std::string& t = text(row, column);
        return t.empty() ? 0 : std::stoll(t);
    }
};

/// An error of the server, or of the way there. `number` 0: an answer that the statement cannot
/// have.
struct Refusal {
    unsigned number = 0;
    std::string words;
};

class Session {
public:
    /// Connects until `deadline`. `address`: numeric, or empty for the Unix socket. Where the
    /// certificate's name is verified, libmariadb looks the name up by itself, for as long as the
    /// system takes.
    static spi::Answer<Session> connect(Shared&, const std::string& address,
                                        boot_clock::time_point deadline);

    /// Whether statements may be prepared, which is a message of its own.
    enum class Prepare : bool { no, yes };
    /// Runs the packet, up to the first statement that fails. True: all were answered.
    bool run(const Packet&, Prepare, std::vector<Result>&, Refusal&);
    int socket() const noexcept { return static_cast<int>(mysql_get_socket(handle_.get())); }
    std::uint64_t id() const noexcept { return mysql_thread_id(handle_.get()); }
    bool tls() const noexcept { return mysql_get_ssl_cipher(handle_.get()) != nullptr; }

private:
    using Handle = std::unique_ptr<MYSQL, decltype(&mysql_close)>;
    struct Close {
        void operator()(MYSQL_STMT* s) const { mysql_stmt_close(s); }
    };
    struct Prepared {
        bool wanted = false;  ///< it was run before
        std::unique_ptr<MYSQL_STMT, Close> handle;
    };
    explicit Session(Handle h) : handle_(std::move(h)) {}
    /// nullopt: it was not executed, and has to be sent as text.
    std::optional<bool> run_prepared(const Filled&, Result&, Refusal&);
    /// Whether the server knows the statements by name, for packets of several.
    bool named();
    bool run_text(const std::string& text, const std::vector<int>& columns, std::vector<Result>&,
                  Refusal&);
    bool take_result(int columns, Result&, Refusal&);
    bool refused(Refusal&) const;

    // These end after the connection, so that the server hears only that that ends.
    std::array<Prepared, most_prepared> prepared_;
    bool prepares_ = true, packed_ = false, named_ = false;
    Handle handle_;
};

}  // namespace holdfast::mysql
