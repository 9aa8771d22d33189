// A text from a .sql file as it is sent: in one line, whatever the file's own lines are.
#pragma once
#include <algorithm>
#include <string>
#include <string_view>

namespace holdfast::sql {

/// Joins the lines of a section, without their indentation, by a space each; by nothing after the
/// semicolon that ends a statement.
inline std::string one_line(std::string_view section) {
    std::string line;
    while (!section.empty()) {
        const auto end = std::min(section.find('\n'), section.size());
        auto part = section.substr(0, end);
        section.remove_prefix(std::min(end + 1, section.size()));
        part.remove_prefix(std::min(part.find_first_not_of(' '), part.size()));
        if (part.empty()) continue;
        if (!line.empty() && !line.ends_with(';')) line += ' ';
        line += part;
    }
    return line;
}

}  // namespace holdfast::sql
