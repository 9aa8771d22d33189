// Reads histories: a state machine for each acquisition, which refuses what cannot be.
#include "checker/history.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <system_error>

#include "checker/blocks.hpp"
#include "checker/huge.hpp"

namespace holdfast::bench::history {

namespace {

std::uint64_t fingerprint(const Owner& owner) noexcept {
    if (owner[0] == '\0') return 0;
    std::uint64_t sum = 0xcbf29ce484222325U;
    for (const char c : owner)
        sum = (sum ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
    return sum == 0 ? 1 : sum;
}

}  // namespace

std::uint32_t History::find(std::uint64_t id) const {
    const auto found = by_recorder_.find(static_cast<std::uint32_t>(id >> 32U));
    if (found == by_recorder_.end()) return npos;
    const File& file = files[found->second];
    const auto number = static_cast<std::uint32_t>(id);
    return number == 0 || number > file.count ? npos : file.first + number - 1;
}

bool History::damaged() const {
    return std::any_of(files.begin(), files.end(), [](const File& f) { return f.damaged; });
}

std::string History::who(const Acquisition& a) const {
    const File& file = files[a.file];
    const auto number = static_cast<std::uint32_t>(&a - acquisitions.data()) - file.first + 1;
    return file.label + " [" + std::to_string(file.process) + "] #" + std::to_string(number);
}

std::string History::when(Nanos t) const {
    if (t == never) return "for ever";
    std::array<char, 40> text{};
    std::snprintf(text.data(), text.size(), "%.9f s",
                  static_cast<double>(t - (begin == never ? 0 : begin)) / 1e9);
    return text.data();
}

/// One read(): holds what is needed across files.
class Reader {
public:
    Reader(History& history, Verdict& verdict) : h_(history), v_(verdict) {}
    void file(const std::filesystem::path& path);
    void finish();

private:
    struct Part {
        std::string text;
        std::size_t length = 0;
        std::uint8_t declared = 0;
        std::uint32_t number = History::npos;  ///< in History::names
    };
    void trouble(Trouble t, const std::string& what);
    bool header(const Header&);
    void name(const Record&);
    void take(const Record&);
    void acquisition(const Record&);
    const char* step(Acquisition&, const Record&);
    void contradiction(Acquisition*, const Record&, const char* what);
    std::uint32_t name_of(std::uint16_t number);
    void end_of_file();

    History& h_;
    Verdict& v_;
    std::vector<std::pair<std::uint64_t, Nanos>> in_line_;
    Header first_;
    bool has_first_ = false;
    File* file_ = nullptr;
    std::uint64_t place_ = 0, most_ = 0;  // number of the record; how many there can be
    std::vector<Part> parts_;
};

void Reader::trouble(Trouble t, const std::string& what) {
    if (t == Trouble::torn) file_->damaged = true;
    if (!v_.wants(t)) return v_.add(t);
    v_.add(t, file_->path + ": " + what);
}

bool Reader::header(const Header& head) {
    if (head.magic != magic || !intact(head)) {
        trouble(Trouble::torn, "the beginning is damaged, or this is no history");
        return false;
    }
    if (head.version != format_version) {
        trouble(Trouble::torn, "format version " + std::to_string(head.version) +
                                   ", this program reads " + std::to_string(format_version));
        return false;
    }
    file_->label = text_of(head.label);
    file_->process = head.process;
    file_->recorder = head.recorder;
    if (!has_first_) first_ = head;
    has_first_ = true;
    if (head.boot != first_.boot || head.time_space != first_.time_space) {
        trouble(Trouble::other_clock, "of another boot or time name space than the first file");
        return false;
    }
    if (!h_.by_recorder_.emplace(head.recorder, h_.files.size() - 1).second) {
        trouble(Trouble::contradictory, "the same recorder as another file: given twice?");
        return false;
    }
    return true;
}

void Reader::file(const std::filesystem::path& path) {
    File& entry = h_.files.emplace_back();
    file_ = &entry;
    entry.path = path.string();
    entry.first = static_cast<std::uint32_t>(h_.acquisitions.size());
    parts_.clear();
    place_ = 0;
    Blocks blocks(entry.path);
    most_ = blocks.expected();
    ++v_.figures.files;
    if (blocks.error() != 0) {
        return trouble(Trouble::torn, std::generic_category().message(blocks.error()));
    }
    const char* block = blocks.next();
    if (block == nullptr && blocks.error() == 0 && blocks.rest() == 0) {
        trouble(Trouble::torn, "empty");
    } else if (block != nullptr) {
        Header head;
        std::memcpy(&head, block, sizeof head);
        if (!header(head)) return;
        while ((block = blocks.next()) != nullptr) {
            ++place_;
            Record record;
            std::memcpy(&record, block, sizeof record);
            if (intact(record))
                take(record);
            else
                trouble(Trouble::torn, "record " + std::to_string(place_) + " is damaged");
        }
    }
    v_.figures.bytes += blocks.bytes();
    v_.figures.records += place_;
    if (blocks.error() != 0)
        trouble(Trouble::torn, std::generic_category().message(blocks.error()));
    if (blocks.rest() != 0)
        trouble(Trouble::torn, "cut off " + std::to_string(blocks.rest()) + " bytes into record " +
                                   std::to_string(place_ + 1));
    end_of_file();
}

std::uint32_t Reader::name_of(std::uint16_t number) {
    if (number == 0 || number > parts_.size()) return History::npos;
    Part& part = parts_[number - 1U];
    if (part.number != History::npos) return part.number;
    if (part.text.size() != part.length) return History::npos;
    const auto found = h_.by_name_.try_emplace(part.text, h_.names.size());
    if (found.second) h_.names.emplace_back().text = part.text;
    part.number = found.first->second;
    Name& name = h_.names[part.number];
    name.fencing = name.fencing || (part.declared & declares_fencing) != 0;
    name.fifo = name.fifo || (part.declared & declares_fifo) != 0;
    return part.number;
}

void Reader::name(const Record& r) {
    const auto length = static_cast<std::size_t>(r.id >> 32U);
    const auto place = static_cast<std::uint32_t>(r.id);
    if (r.name == 0) return contradiction(nullptr, r, "a name without a number");
    if (parts_.size() < r.name) parts_.resize(r.name);
    Part& part = parts_[r.name - 1U];
    if (place != part.text.size() || (place != 0 && length != part.length)) {
        if (!file_->damaged) contradiction(nullptr, r, "a name that is not in one piece");
        return;
    }
    NamePart text{};
    std::memcpy(text.data(), reinterpret_cast<const char*>(&r) + offsetof(Record, until),
                text.size());
    part.length = length;
    part.declared = r.detail;
    part.text.append(text.data(), std::min(text.size(), length - place));
}

void Reader::contradiction(Acquisition* a, const Record& r, const char* what) {
    if (a != nullptr) {
        a->left_out = true;
        if (a->name < h_.names.size()) h_.names[a->name].doubtful = true;
    }
    // What a damaged file lacks explains it; that it is damaged has been told.
    if (file_->damaged) return;
    trouble(Trouble::contradictory, "record " + std::to_string(place_) + " (acquisition #" +
                                        std::to_string(static_cast<std::uint32_t>(r.id)) +
                                        "): " + what);
    // Whose record it should have been is not known: one is missing somewhere.
    if (a == nullptr) file_->damaged = true;
}

void Reader::take(const Record& r) {
    if (file_->closed) return contradiction(nullptr, r, "a record after the end of the process");
    if (r.kind == Kind::name) return name(r);
    h_.begin = std::min(h_.begin, r.at);
    if (r.kind == Kind::closed) {
        file_->closed = true;
        return;
    }
    if (r.kind == Kind::server_killed) {
        if (r.until < 0 || r.until > r.at) return contradiction(nullptr, r, "killed in no time");
        h_.kills.push_back({r.until, r.at});
        return;
    }
    if (r.kind < Kind::name || r.kind > Kind::server_killed)
        return contradiction(nullptr, r, "of a kind that this version does not have");
    const std::uint32_t name = name_of(r.name);
    if (name == History::npos) return contradiction(nullptr, r, "of a name that is not known");
    if (r.kind == Kind::write) {
        h_.writes.push_back({r.at, static_cast<std::uint64_t>(r.until), r.token, r.id, name,
                             static_cast<std::uint32_t>(h_.files.size() - 1),
                             (r.detail & write_accepted) != 0, (r.detail & store_is_fenced) != 0});
    } else if (r.kind == Kind::seen) {
        h_.sightings.push_back({r.until, r.at, fingerprint(r.owner), name,
                                static_cast<std::uint32_t>(h_.files.size() - 1)});
    } else if (r.kind == Kind::in_line) {
        in_line_.emplace_back(r.id, r.at);
    } else {
        acquisition(r);
    }
}

void Reader::acquisition(const Record& r) {
    const auto number = static_cast<std::uint32_t>(r.id);
    if (r.id >> 32U != file_->recorder || number == 0 || number > most_)
        return contradiction(nullptr, r, "of an acquisition that this file cannot have");
    if (number > file_->count) {
        file_->count = number;
        h_.acquisitions.resize(file_->first + number);
    }
    Acquisition& a = h_.acquisitions[file_->first + number - 1];
    const std::uint32_t name = name_of(r.name);
    if (r.kind == Kind::invoked && a.invoked == never) {
        a.name = name;
        a.file = static_cast<std::uint32_t>(h_.files.size() - 1);
        a.invoked = a.last = r.at;
        return;
    }
    if (a.invoked == never) {
        a.name = name;
        return contradiction(&a, r, "it was never invoked");
    }
    if (a.name != name) {
        h_.names[name].doubtful = true;
        return contradiction(&a, r, "it has another name");
    }
    if (const char* what = step(a, r)) contradiction(&a, r, what);
    a.last = std::max(a.last, r.at);
}

/// What is wrong with this record, or null.
const char* Reader::step(Acquisition& a, const Record& r) {
    if (r.at < a.invoked) return "earlier than its invocation";
    if (r.kind == Kind::invoked) return "invoked twice";
    if (r.kind == Kind::failed) {
        if (a.was_granted || a.has_failed) return "failed after it had returned";
        a.has_failed = true;
        a.outcome = static_cast<Outcome>(r.detail);
        a.owner = fingerprint(r.owner);
        a.done = r.at;
        return nullptr;
    }
    if (r.kind == Kind::granted) {
        if (a.was_granted || a.has_failed) return "granted after it had returned";
        a.was_granted = true;
        a.granted = r.at;
        a.until = r.until;
        a.token = r.token;
        a.owner = fingerprint(r.owner);
        a.previous = static_cast<Previous>(r.detail);
        return nullptr;
    }
    if (!a.was_granted) return "it was not granted";
    if (r.at < a.granted) return "earlier than its grant";
    const bool over = a.was_lost || a.began_release;
    if (r.kind == Kind::released) {
        if (!a.began_release || a.was_released) return "released without a release";
        if (r.at < a.over) return "released before its end";
        a.was_released = true;
        a.answer = static_cast<Answer>(r.detail);
        a.done = r.at;
        return nullptr;
    }
    if (r.kind == Kind::renewed) {
        if (over && r.until > a.until) return "renewed after its end";
        a.until = std::max(a.until, r.until);
        return nullptr;
    }
    // A loss may be told in another thread while the release goes on, so either comes first.
    if (r.kind == Kind::lost ? a.was_lost : a.began_release) return "ended twice";
    if (r.until < a.until) return "its validity went back";
    if (!over) a.until = r.until;
    (r.kind == Kind::lost ? a.was_lost : a.began_release) = true;
    if (r.kind == Kind::releasing) a.abandoned = r.detail != 0;
    a.over = std::min(a.over, r.at);
    return nullptr;
}

void Reader::end_of_file() {
    for (const Part& part : parts_)
        if (part.text.size() != part.length && !file_->damaged && file_->closed)
            trouble(Trouble::contradictory, "a name lacks its end");
    for (std::uint32_t i = 0; i < file_->count; ++i) {
        Acquisition& a = h_.acquisitions[file_->first + i];
        a.file = static_cast<std::uint32_t>(h_.files.size() - 1);
        const bool open = a.was_granted ? !a.was_lost && !a.began_release : !a.has_failed;
        Record r;
        r.id = i + 1;
        if (a.invoked == never) {
            if (!a.left_out && file_->closed)
                contradiction(&a, r, "there is nothing of it, though it must have been");
            a.left_out = true;
        } else if (open && file_->closed && !a.left_out) {
            contradiction(&a, r, "the process ended in order and left it open");
        }
    }
}

void Reader::finish() {
    for (const auto& [id, at] : in_line_) {
        const std::uint32_t index = h_.find(id);
        if (index == History::npos) continue;
        Acquisition& a = h_.acquisitions[index];
        // Seen before it was asked: a mistake of the observer; seen afterwards says nothing.
        if (at >= a.invoked && (!a.was_granted || at < a.granted))
            a.in_line = std::min(a.in_line, at);
    }
    Figures& f = v_.figures;
    f.names = h_.names.size();
    f.writes = h_.writes.size();
    const bool damaged = h_.damaged();
    for (Name& name : h_.names)
        name.doubtful = name.doubtful || damaged;
    for (const Acquisition& a : h_.acquisitions) {
        ++f.acquisitions;
        f.left_out += a.left_out ? 1 : 0;
        f.granted += a.was_granted ? 1 : 0;
        f.failed += a.has_failed ? 1 : 0;
        f.unfinished += !a.left_out && !a.was_granted && !a.has_failed ? 1 : 0;
        f.silent += !a.left_out && a.was_granted && a.over == never ? 1 : 0;
    }
}

History read(const std::vector<std::filesystem::path>& files, Verdict& verdict) {
    History history;
    Reader reader(history, verdict);
    std::uint64_t bytes = 0;
    for (const auto& file : files) {
        std::error_code ignored;
        if (const auto size = std::filesystem::file_size(file, ignored); !ignored) bytes += size;
    }
    // Four records for most acquisitions; a little too much costs address space only.
    reserve_huge(history.acquisitions, static_cast<std::size_t>(bytes / record_size / 3));
    history.files.reserve(files.size());
    for (const auto& file : files)
        reader.file(file);
    reader.finish();
    return history;
}

}  // namespace holdfast::bench::history
