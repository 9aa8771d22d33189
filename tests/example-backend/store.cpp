#include "store.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <stdexcept>
#include <utility>

namespace ledger {
namespace {

/// The write lock of a file: of one thread of one process at a time.
class WriteLock {
public:
    explicit WriteLock(const std::string& file)
        : fd_(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)),
          held_(fd_ >= 0 && ::flock(fd_, LOCK_EX | LOCK_NB) == 0) {}
    ~WriteLock() {
        // Not by close() alone: a forked child may have a copy of the descriptor.
        if (held_) ::flock(fd_, LOCK_UN);
        if (fd_ >= 0) ::close(fd_);
    }
    WriteLock(const WriteLock&) = delete;
    WriteLock& operator=(const WriteLock&) = delete;
    bool held() const noexcept { return held_; }

private:
    const int fd_;
    const bool held_;
};

std::string bytes(std::istream& in, std::size_t count) {
    std::string out(count, '\0');
    in.read(out.data(), static_cast<std::streamsize>(count));
    return out;
}

}  // namespace

// Each entry is "VERSION KEY-SIZE TEXT-SIZE\n", then the bytes of both.
Snapshot Store::read() const {
    Snapshot out;
    if (!std::filesystem::exists(file_)) return out;
    std::ifstream in(file_, std::ios::binary);
    Entry entry;
    std::size_t key = 0, text = 0;
    while (in >> entry.version >> key >> text) {
        in.get();
        std::string name = bytes(in, key);
        entry.text = bytes(in, text);
        out.insert_or_assign(std::move(name), entry);
    }
    if (!in.eof()) throw std::runtime_error(file_.string() + " cannot be read");
    return out;
}

// A reader has the old file or the new one, never a part.
void Store::replace(const Snapshot& all) const {
    const std::string fresh = file_.string() + ".new";
    std::ofstream out(fresh, std::ios::binary | std::ios::trunc);
    for (const auto& [key, entry] : all)
        out << entry.version << ' ' << key.size() << ' ' << entry.text.size() << '\n'
            << key << entry.text;
    out.close();
    if (!out) throw std::runtime_error(fresh + " cannot be written");
    std::filesystem::rename(fresh, file_);
}

Commit Store::commit(const std::vector<Write>& writes) noexcept try {
    const WriteLock lock(file_.string() + ".lock");
    if (!lock.held()) return errno == EWOULDBLOCK ? Commit::busy : Commit::refused;
    Snapshot all = read();
    for (const Write& w : writes) {
        Entry& entry = all[w.key];
        if (entry.version != w.version) return Commit::conflict;
        entry = {w.text, w.version + 1};
    }
    replace(all);
    return Commit::done;
} catch (const std::exception&) {
    return Commit::refused;
}

}  // namespace ledger
