// MetricsFile: whole or not at all, whatever is in the way.
#include "metrics_file.hpp"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "catch.hpp"

using namespace holdfast;
using namespace holdfast::cli;
namespace fs = std::filesystem;

namespace {

/// A folder of its own, removed at the end.
struct Folder {
    fs::path path;
    Folder() {
        std::string name = (fs::temp_directory_path() / "holdfast-metrics-XXXXXX").string();
        REQUIRE(::mkdtemp(name.data()) != nullptr);
        path = name;
    }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    ~Folder() { fs::remove_all(path); }
    std::string file(const char* name) const { return (path / name).string(); }
    std::size_t entries() const {
        return static_cast<std::size_t>(
            std::distance(fs::directory_iterator(path), fs::directory_iterator()));
    }
};

std::string content(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

Stats with_acquired(std::uint64_t n) {
    Stats s;
    s.acquired = n;
    return s;
}

/// No file of this process may be longer meanwhile: a full disk.
struct FullDisk {
    rlimit before{};
    explicit FullDisk(rlim_t most) {
        std::signal(SIGXFSZ, SIG_IGN);
        ::getrlimit(RLIMIT_FSIZE, &before);
        const rlimit now{most, before.rlim_max};
        ::setrlimit(RLIMIT_FSIZE, &now);
    }
    FullDisk(const FullDisk&) = delete;
    FullDisk& operator=(const FullDisk&) = delete;
    ~FullDisk() { ::setrlimit(RLIMIT_FSIZE, &before); }
};

}  // namespace

TEST_CASE("MetricsFile: the text, its labels, and the rights of a new file") {
    const Folder folder;
    const mode_t mask = ::umask(027);
    MetricsFile file(folder.file("nightly.old.prom"), "redis");
    CHECK(::umask(mask) == 027);
    REQUIRE(file.write(with_acquired(3)).empty());
    const std::string text = content(folder.file("nightly.old.prom"));
    CHECK(text.find("\nholdfast_acquired_total{backend=\"redis\",run=\"nightly.old\"} 3\n") !=
          std::string::npos);
    CHECK(text.ends_with("\n# EOF\n"));
    struct stat facts {};
    REQUIRE(::stat(folder.file("nightly.old.prom").c_str(), &facts) == 0);
    CHECK((facts.st_mode & 07777U) == 0640);
    REQUIRE(file.write(with_acquired(4)).empty());
    CHECK(content(folder.file("nightly.old.prom")).find("} 4\n") != std::string::npos);
    CHECK(folder.entries() == 1);
}

TEST_CASE("MetricsFile: without a path nothing is written") {
    MetricsFile file("", "redis");
    CHECK_FALSE(file.wanted());
    CHECK(file.write({}).empty());
}

TEST_CASE("MetricsFile: a disk that is full leaves the file as it was, and nothing beside it") {
    const Folder folder;
    MetricsFile file(folder.file("a.prom"), "redis");
    REQUIRE(file.write(with_acquired(3)).empty());
    const std::string before = content(folder.file("a.prom"));
    std::string fault;
    {
        const FullDisk full(before.size() / 2);
        fault = file.write(with_acquired(4));
    }
    CHECK(fault.starts_with("cannot write --metrics \"" + folder.file("a.prom") + "\": File too"));
    CHECK(content(folder.file("a.prom")) == before);
    CHECK(folder.entries() == 1);
    REQUIRE(file.write(with_acquired(4)).empty());
    CHECK(content(folder.file("a.prom")) != before);
}

TEST_CASE("MetricsFile: what is not a regular file stays what it is") {
    const Folder folder;
    fs::create_directory(folder.file("folder"));
    REQUIRE(::mkfifo(folder.file("pipe").c_str(), 0600) == 0);
    std::ofstream(folder.file("target")) << "mine";
    fs::create_symlink("target", folder.file("link"));
    for (const char* name : {"folder", "pipe", "link"}) {
        const auto type = fs::symlink_status(folder.file(name)).type();
        MetricsFile file(folder.file(name), "redis");
        CHECK(file.write({}) ==
              "cannot write --metrics \"" + folder.file(name) + "\": it is not a regular file");
        CHECK(fs::symlink_status(folder.file(name)).type() == type);
    }
    CHECK(content(folder.file("target")) == "mine");
    MetricsFile nowhere(folder.file("absent/a.prom"), "redis");
    CHECK(nowhere.write({}) == "cannot write --metrics \"" + folder.file("absent/a.prom") +
                                   "\": No such file or directory");
    CHECK(folder.entries() == 4);
}

TEST_CASE("MetricsFile: a reader sees one text or another, never a part") {
    const Folder folder;
    const std::string path = folder.file("a.prom");
    MetricsFile file(path, "redis");
    REQUIRE(file.write({}).empty());
    std::atomic<bool> over{false};
    std::atomic<int> parts{0}, reads{0};
    std::thread reader([&] {
        while (!over) {
            const std::string text = content(path);
            if (!text.starts_with("# TYPE ") || !text.ends_with("\n# EOF\n")) ++parts;
            ++reads;
        }
    });
    for (std::uint64_t n = 1; n <= 200 || reads < 200; ++n)
        CHECK(file.write(with_acquired(n)).empty());
    over = true;
    reader.join();
    CHECK(parts == 0);
}
