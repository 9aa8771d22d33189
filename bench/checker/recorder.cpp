#include "checker/recorder.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <ctime>
#include <system_error>

namespace holdfast::bench::history {

namespace {

bool write_block(int fd, const void* bytes) noexcept {
    for (;;) {
        const ssize_t n = ::write(fd, bytes, record_size);
        if (n == static_cast<ssize_t>(record_size)) return true;
        if (n < 0 && errno == EINTR) continue;
        return false;
    }
}

/// The first 16 hexadecimal digits; zeros where the kernel has none, so that files still compare.
std::array<char, 16> boot_id() noexcept {
    std::array<char, 16> id{};
    std::array<char, 40> text{};
    const int fd = ::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return id;
    const ssize_t n = ::read(fd, text.data(), text.size());
    ::close(fd);
    std::size_t at = 0;
    for (ssize_t i = 0; i < n && at < id.size(); ++i)
        if (const char c = text[static_cast<std::size_t>(i)]; c != '-') id[at++] = c;
    return id;
}

}  // namespace

Nanos now() noexcept {
    timespec t{};
    ::clock_gettime(CLOCK_BOOTTIME, &t);
    return Nanos{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

Recorder::Recorder(const std::filesystem::path& file, std::string_view process) {
    fd_ = ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644);
    if (fd_ < 0)
        throw std::system_error(errno, std::generic_category(), "the history " + file.string());
    Header header;
    header.magic = magic;
    header.version = format_version;
    while (header.recorder == 0 &&
           ::getrandom(&header.recorder, sizeof header.recorder, 0) != sizeof header.recorder)
        header.recorder = 0;
    header.process = ::getpid();
    header.boot = boot_id();
    struct stat space {};
    if (::stat("/proc/self/ns/time", &space) == 0) header.time_space = space.st_ino;
    put_text(header.label, process);
    seal(header);
    base_ = std::uint64_t{header.recorder} << 32U;
    if (write_block(fd_, &header)) return;
    const int error = errno;
    ::close(fd_);
    throw std::system_error(error, std::generic_category(), "the history " + file.string());
}

Recorder::~Recorder() {
    if (claims_end_) append(Kind::closed, {}, 0);
    ::close(fd_);
}

void Recorder::append(Record& record) noexcept {
    // What follows a torn record could not be read in step, so nothing follows it.
    if (!good_) return;
    seal(record);
    if (!write_block(fd_, &record)) good_ = false;
}

void Recorder::append(Kind kind, const Ticket& ticket, std::uint8_t detail, Nanos until) noexcept {
    Record r;
    r.kind = kind;
    r.detail = detail;
    r.name = ticket.name;
    r.id = ticket.id;
    r.until = until;
    r.at = now();
    append(r);
}

std::uint16_t Recorder::name(std::string_view text, Declared declared) noexcept {
    const auto number = static_cast<std::uint16_t>(++names_);
    std::size_t place = 0;
    do {
        NamePart part{};
        put_text(part, text.substr(place));
        Record r;
        r.kind = Kind::name;
        r.detail = declared;
        r.name = number;
        r.id = std::uint64_t{text.size()} << 32U | place;
        r.at = now();
        std::memcpy(reinterpret_cast<char*>(&r) + offsetof(Record, until), part.data(),
                    part.size());
        append(r);
        place += part.size();
    } while (place < text.size());
    return number;
}

Ticket Recorder::invoked(std::uint16_t name) noexcept {
    const Ticket ticket{base_ | ++acquisitions_, name};
    append(Kind::invoked, ticket, 0);
    return ticket;
}

void Recorder::in_line(const Ticket& t) noexcept {
    append(Kind::in_line, t, 0);
}

void Recorder::granted(const Ticket& t, Nanos until, std::uint64_t token, std::string_view owner,
                       Previous previous) noexcept {
    Record r;
    r.kind = Kind::granted;
    r.detail = static_cast<std::uint8_t>(previous);
    r.name = t.name;
    r.id = t.id;
    r.until = until;
    r.token = token;
    put_text(r.owner, owner);
    r.at = now();
    append(r);
}

void Recorder::failed(const Ticket& t, Outcome outcome, std::string_view owner) noexcept {
    Record r;
    r.kind = Kind::failed;
    r.detail = static_cast<std::uint8_t>(outcome);
    r.name = t.name;
    r.id = t.id;
    put_text(r.owner, owner);
    r.at = now();
    append(r);
}

void Recorder::renewed(const Ticket& t, Nanos until) noexcept {
    append(Kind::renewed, t, 0, until);
}

void Recorder::releasing(const Ticket& t, Nanos until, bool abandoned) noexcept {
    append(Kind::releasing, t, abandoned ? 1 : 0, until);
}

void Recorder::released(const Ticket& t, Answer answer) noexcept {
    append(Kind::released, t, static_cast<std::uint8_t>(answer));
}

void Recorder::lost(const Ticket& t, Nanos until) noexcept {
    append(Kind::lost, t, 0, until);
}

void Recorder::write(std::uint16_t name, std::uint64_t store, std::uint64_t token,
                     std::uint64_t writer, bool accepted, bool fenced) noexcept {
    Record r;
    r.kind = Kind::write;
    r.detail =
        static_cast<std::uint8_t>((accepted ? write_accepted : 0) | (fenced ? store_is_fenced : 0));
    r.name = name;
    r.id = writer;
    r.until = static_cast<Nanos>(store);
    r.token = token;
    r.at = now();
    append(r);
}

void Recorder::server_killed(Nanos from) noexcept {
    append(Kind::server_killed, {}, 0, from);
}

void Recorder::seen(std::uint16_t name, std::string_view owner, Nanos asked) noexcept {
    Record r;
    r.kind = Kind::seen;
    r.name = name;
    r.until = asked;
    put_text(r.owner, owner);
    r.at = now();
    append(r);
}

}  // namespace holdfast::bench::history
