#include "checker/blocks.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace holdfast::bench::history {

Blocks::Blocks(const std::string& path) : buffer_(4096 * record_size) {
    fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat status {};
    if (fd_ < 0 || ::fstat(fd_, &status) != 0)
        error_ = errno;
    else
        expected_ = static_cast<std::uint64_t>(status.st_size) / record_size;
}

Blocks::~Blocks() {
    if (fd_ >= 0) ::close(fd_);
}

const char* Blocks::next() {
    if (at_ + record_size > have_) {
        std::memmove(buffer_.data(), buffer_.data() + at_, have_ - at_);
        have_ -= at_;
        at_ = 0;
        while (error_ == 0 && have_ < record_size) {
            const ssize_t n = ::read(fd_, buffer_.data() + have_, buffer_.size() - have_);
            if (n < 0 && errno == EINTR) continue;
            if (n < 0) error_ = errno;
            if (n <= 0) break;
            have_ += static_cast<std::size_t>(n);
            bytes_ += static_cast<std::uint64_t>(n);
        }
        if (have_ < record_size) {
            rest_ = have_;
            return nullptr;
        }
    }
    const char* block = buffer_.data() + at_;
    at_ += record_size;
    return block;
}

}  // namespace holdfast::bench::history
