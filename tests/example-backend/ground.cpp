// The suite's ground on the example.
#include "ground.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "store.hpp"

namespace suite {
namespace {

class Ledger final : public Harness {
public:
    Ledger() : Harness("ledger") {}
    ~Ledger() override { ::close(lock_); }
    bool plant_stranger(const std::string& name) override { return put(name, stranger); }
    bool stranger_is_whole(const std::string& name) override {
        return store_.read()["lock " + name].text == stranger;
    }
    bool erase_behind(const std::string& name) override { return put(name, {}); }
    bool pause_server() override { return ::flock(lock_, LOCK_EX) == 0; }
    bool resume_server() override { return ::flock(lock_, LOCK_UN) == 0; }

protected:
    std::string base_url() const override { return "ledger://" + file_; }

private:
    static constexpr std::string_view stranger = "not a lock";

    /// As a client without Holdfast.
    bool put(const std::string& name, std::string_view text) {
        const std::string key = "lock " + name;
        ledger::Commit made{};
        do
            made = store_.commit({{key, std::string(text), store_.read()[key].version}});
        while (made == ledger::Commit::conflict || made == ledger::Commit::busy);
        return made == ledger::Commit::done;
    }

    const lab::TempDir folder_;
    const std::string file_ = (folder_ / "locks.ledger").string();
    ledger::Store store_{file_};
    const int lock_ = ::open((file_ + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
};

const AddGround ledger{"ledger", [] { return std::make_unique<Ledger>(); },
                       all_but({C::fifo, C::notified, C::cross_host, C::watch}), break_traced};

}  // namespace
}  // namespace suite
