// The pictures of `holdfast demo`: a bar, and who held the lock when.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/clock.hpp"

namespace holdfast::cli {

/// `part` of `whole`, 40 columns wide. In ASCII where the locale is not UTF-8.
std::string bar(long part, long whole);

/// Rewrites one line of standard output in place on a terminal; elsewhere only the last text of it
/// is written.
void draw_line(const std::string& text, bool last);

/// A row for each worker, a column for each 100 ms. On a terminal it grows while one looks;
/// elsewhere it is written once, by finish().
class Timeline {
public:
    enum class State : unsigned char { none, waits, holds, paused };

    /// Nothing is drawn unless `shown`.
    explicit Timeline(bool shown);
    /// From now on. Workers are counted from 1; a row begins with its first state.
    void set(std::size_t worker, State);
    /// At this moment: "killed", "accepted", "refused".
    void mark(std::size_t worker, std::string_view what);
    /// Behind the row.
    void note(std::size_t worker, std::string text);
    /// Draws again, at most every 50 ms.
    void tick();
    void finish();

private:
    struct Change {
        boot_clock::time_point at;
        State state;
    };
    struct Mark {
        boot_clock::time_point at;
        std::string what;
    };
    struct Row {
        std::vector<Change> changes;
        std::vector<Mark> marks;
        std::string note;
    };
    Row& row(std::size_t worker);
    std::size_t column(boot_clock::time_point) const;
    std::string text(const Row&, std::size_t columns) const;
    void draw();

    const bool shown_, live_, colors_, utf8_;
    const boot_clock::time_point began_ = boot_clock::now();
    boot_clock::time_point drawn_;
    std::vector<Row> rows_;
    std::size_t lines_ = 0;
};

}  // namespace holdfast::cli
