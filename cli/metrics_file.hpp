// --metrics: the numbers of this run in a file, as node_exporter's textfile collector reads them.
#pragma once
#include <condition_variable>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "holdfast/client.hpp"
#include "holdfast/prometheus.hpp"

namespace holdfast::cli {

/// Written whole or not at all: readers see the old text or the new one. Make it while the process
/// has one thread. One thread at a time may write.
class MetricsFile {
public:
    /// `path` empty: writes nothing. The file's name without its extension becomes the label `run`,
    /// so that several files of one folder have no series in common.
    MetricsFile(std::string path, std::string_view backend);

    /// What is wrong, or nothing. Then the file is as it was before.
    std::string write(const Stats&);
    /// The same where nobody can act on a fault: warns of the first.
    void update(const Stats&);
    bool wanted() const noexcept { return !path_.empty(); }

private:
    std::string replace(std::string_view text) const;

    const std::string path_;
    MetricLabels labels_;
    std::string written_;
    unsigned mode_ = 0;
    bool warned_ = false;
};

/// Keeps the file up to date from its construction to its end: within a second of each change, on
/// a thread of its own, since a slow file system must not hold up the deadline's keeper.
class MetricsUpdates {
public:
    MetricsUpdates(MetricsFile&, const Client&);
    /// Writes the last numbers.
    ~MetricsUpdates();
    MetricsUpdates(const MetricsUpdates&) = delete;
    MetricsUpdates& operator=(const MetricsUpdates&) = delete;

private:
    void run();
    void update() noexcept;

    MetricsFile& file_;
    const Client client_;
    std::mutex mutex_;
    std::condition_variable ends_;
    bool ended_ = false;
    std::thread thread_;
};

}  // namespace holdfast::cli
