// Clients of one process that have the same file open: a release by one of them, or by a lane,
// reaches the others' waiters at once.
#include <iterator>
#include <map>

#include "of_process.hpp"
#include "worker.hpp"

namespace holdfast::sqlite {
namespace {

struct Registry {
    std::mutex mutex;
    std::map<FileId, std::vector<std::weak_ptr<Worker>>> files;
};

}  // namespace

void join_neighbours(const FileId& file, const std::shared_ptr<Worker>& worker) {
    auto& r = of_process<Registry>();
    const std::lock_guard hold(r.mutex);
    for (auto it = r.files.begin(); it != r.files.end();) {
        std::erase_if(it->second, [](const auto& w) { return w.expired(); });
        it = it->second.empty() ? r.files.erase(it) : std::next(it);
    }
    r.files[file].push_back(worker);
}

void kick_neighbours(const FileId& file) noexcept {
    auto& r = of_process<Registry>();
    std::vector<std::shared_ptr<Worker>> workers;  // the last owner must not die under the mutex
    {
        const std::lock_guard hold(r.mutex);
        const auto it = r.files.find(file);
        if (it == r.files.end()) return;
        for (const auto& weak : it->second)
            if (auto w = weak.lock()) workers.push_back(std::move(w));
    }
    for (const auto& w : workers)
        w->kick();
}

}  // namespace holdfast::sqlite
