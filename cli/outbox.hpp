// Text on its way to a descriptor that perhaps nobody reads: a full pipe or a stopped terminal must
// not stop holdfast, which has a deadline to keep.
#pragma once
#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <string_view>

#include "holdfast/clock.hpp"
#include "unique_fd.hpp"

namespace holdfast::cli {

/// Lines, written without ever waiting and without changing the descriptor for processes that share
/// it. At most 64 KiB are kept; then the oldest go. Not thread-safe.
class Outbox {
public:
    /// `fd` below zero: takes nothing. `gap` says in one line how many were dropped.
    Outbox(int fd, std::function<std::string(std::size_t dropped)> gap);

    /// One or more whole lines, written at once as far as they go; as flush().
    bool add(std::string lines);
    /// Writes what goes now. False on an error, which is in errno: nothing is taken from then on.
    bool flush();
    /// Flushes until all is written, but no longer than this. What is left is dropped; returns how
    /// many lines were dropped and not said.
    std::size_t drain(milliseconds cap);
    /// A descriptor of our own for the same file, or -1: not for a forked process to keep.
    int own() const noexcept { return own_.get(); }

private:
    enum class Way : unsigned char { none, plain, own, socket, polled };
    long write_some(std::string_view);

    int fd_;
    Way way_ = Way::none;
    UniqueFd own_;
    std::function<std::string(std::size_t)> gap_;
    std::deque<std::string> lines_;
    std::size_t bytes_ = 0;    ///< of lines_
    std::size_t written_ = 0;  ///< of the first line
    std::size_t dropped_ = 0;  ///< and not said yet
};

}  // namespace holdfast::cli
