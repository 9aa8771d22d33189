// Configurations may hold passwords, so the mode is set before the first byte is written.
#include "text_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "holdfast/lab/error.hpp"

namespace holdfast::lab::detail {

void write_text(const std::filesystem::path& path, const std::string& text) {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0) {
        throw LabError("cannot write " + path.string());
    }
    std::size_t done = 0;
    while (done < text.size()) {
        const auto written = ::write(fd, text.data() + done, text.size() - done);
        if (written <= 0) {
            ::close(fd);
            throw LabError("cannot write " + path.string());
        }
        done += static_cast<std::size_t>(written);
    }
    ::close(fd);
}

std::string read_text(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

std::string last_lines(const std::filesystem::path& path, std::size_t lines) {
    std::string text = read_text(path);
    while (!text.empty() && text.back() == '\n') {
        text.pop_back();
    }
    std::size_t begin = text.size();
    for (std::size_t line = 0; line < lines && begin != std::string::npos && begin > 0; ++line) {
        begin = text.rfind('\n', begin - 1);
    }
    return begin == std::string::npos || begin == 0 ? text : text.substr(begin + 1);
}

}  // namespace holdfast::lab::detail
