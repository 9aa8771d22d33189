// The recording has a thread of its own, since the server drops a monitor that does not read.
#include "holdfast/lab/redis_monitor.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cctype>
#include <cstdlib>
#include <mutex>
#include <random>
#include <thread>
#include <utility>

#include "holdfast/lab/error.hpp"

namespace holdfast::lab {
namespace {

int hex_value(char c) {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    return std::tolower(static_cast<unsigned char>(c)) - 'a' + 10;
}

// Reads one quoted word whose opening quote is at text[at]; leaves `at` behind the closing one.
std::string quoted_word(const std::string& text, std::size_t& at) {
    std::string word;
    for (++at; at < text.size() && text[at] != '"'; ++at) {
        if (text[at] != '\\' || at + 1 >= text.size()) {
            word += text[at];
            continue;
        }
        const char escaped = text[++at];
        switch (escaped) {
            case 'n':
                word += '\n';
                break;
            case 'r':
                word += '\r';
                break;
            case 't':
                word += '\t';
                break;
            case 'a':
                word += '\a';
                break;
            case 'b':
                word += '\b';
                break;
            case 'x':
                if (at + 2 < text.size()) {
                    word +=
                        static_cast<char>(hex_value(text[at + 1]) * 16 + hex_value(text[at + 2]));
                    at += 2;
                }
                break;
            default:
                word += escaped;
        }
    }
    if (at >= text.size()) {
        throw LabError("a word without an end in a MONITOR line: " + text);
    }
    ++at;
    return word;
}

}  // namespace

MonitorLine parse_monitor_line(const std::string& line) {
    const auto open = line.find(" [");
    const auto space = open == std::string::npos ? open : line.find(' ', open + 2);
    const auto close = space == std::string::npos ? space : line.find("] ", space);
    if (close == std::string::npos) {
        throw LabError("not a MONITOR line: " + line);
    }
    MonitorLine result;
    result.time = std::strtod(line.c_str(), nullptr);
    result.database = std::atoi(line.c_str() + open + 2);
    result.client = line.substr(space + 1, close - space - 1);
    for (std::size_t at = close + 2; at < line.size();) {
        if (line[at] == '"') {
            result.command.push_back(quoted_word(line, at));
        } else {
            ++at;
        }
    }
    return result;
}

class RedisMonitor::Impl {
public:
    explicit Impl(std::function<RedisConnection()> connect)
        : connect_(std::move(connect)), connection_(connect_()) {
        const auto reply = connection_.command({"MONITOR"});
        if (!reply.is_ok()) {
            throw LabError("MONITOR was refused: " + to_string(reply));
        }
        std::random_device random;
        marker_ = fmt::format("holdfast-lab-end-{:08x}{:08x}", random(), random());
        thread_ = std::thread([this] { record(); });
    }

    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;

    ~Impl() {
        // A forked child has the object but not the thread.
        if (owner_ == ::getpid()) {
            join();
        } else if (thread_.joinable()) {
            thread_.detach();
        }
    }

    std::vector<MonitorLine> lines() const {
        const std::lock_guard guard(mutex_);
        return lines_;
    }

    std::vector<MonitorLine> stop(std::chrono::nanoseconds cap) {
        auto own = connect_();
        const auto reply = own.command({"ECHO", marker_}, cap);
        if (reply.is_error()) {
            throw LabError("the end of a recording was refused: " + to_string(reply));
        }
        const bool ended = reached([&] { return ended_.load(); }, cap);
        join();
        const std::lock_guard guard(mutex_);
        if (!ended || !failure_.empty()) {
            throw LabError("the recording is not complete: " +
                           (failure_.empty() ? std::string("its end was not seen") : failure_));
        }
        return lines_;
    }

private:
    void record() {
        try {
            while (!leave_) {
                const auto reply = connection_.receive(std::chrono::milliseconds(50));
                if (!reply) {
                    continue;
                }
                auto line = parse_monitor_line(reply->text);
                if (line.command.size() == 2 && line.command[1] == marker_) {
                    break;
                }
                const std::lock_guard guard(mutex_);
                lines_.push_back(std::move(line));
            }
        } catch (const LabError& error) {
            const std::lock_guard guard(mutex_);
            failure_ = error.what();
        }
        ended_ = true;
    }

    void join() {
        leave_ = true;
        if (thread_.joinable()) {
            thread_.join();
        }
    }

    const pid_t owner_ = ::getpid();
    std::function<RedisConnection()> connect_;
    RedisConnection connection_;
    std::string marker_;
    mutable std::mutex mutex_;
    std::vector<MonitorLine> lines_;
    std::string failure_;
    std::atomic<bool> leave_{false};
    std::atomic<bool> ended_{false};
    std::thread thread_;
};

RedisMonitor::RedisMonitor(std::function<RedisConnection()> connect)
    : impl_(std::make_unique<Impl>(std::move(connect))) {}
RedisMonitor::RedisMonitor(RedisMonitor&&) noexcept = default;
RedisMonitor& RedisMonitor::operator=(RedisMonitor&&) noexcept = default;
RedisMonitor::~RedisMonitor() = default;

std::vector<MonitorLine> RedisMonitor::lines() const {
    return impl_->lines();
}

std::vector<MonitorLine> RedisMonitor::stop(std::chrono::nanoseconds cap) {
    return impl_->stop(cap);
}

}  // namespace holdfast::lab
