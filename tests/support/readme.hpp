// What a backend's README says is sent, to be compared with what is.
#pragma once
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "catch.hpp"

namespace test_support {

inline std::string readme(const std::string& file) {
    std::ifstream in(file);
    std::stringstream all;
    all << in.rdbuf();
    return all.str();
}

/// Row -> its requests, from the table between <!-- requests --> and <!-- /requests -->.
inline std::map<std::string, std::string> requests_of(const std::string& file) {
    const std::string text = readme(file);
    const auto begin = text.find("<!-- requests -->"), end = text.find("<!-- /requests -->");
    REQUIRE(begin != text.npos);
    REQUIRE(end != text.npos);
    std::stringstream lines(text.substr(begin, end - begin));
    std::map<std::string, std::string> out;
    for (std::string line; std::getline(lines, line);) {
        const auto first = line.find("| `"), middle = line.find("` | `");
        if (first == line.npos || middle == line.npos) continue;
        const auto last = line.rfind('`');
        out[line.substr(3, middle - 3)] = line.substr(middle + 5, last - middle - 5);
    }
    return out;
}

/// The statements of the block of SQL behind <!-- NAME -->, each on one line.
inline std::vector<std::string> statements_of(const std::string& file, const std::string& name) {
    const std::string text = readme(file);
    const auto mark = text.find("<!-- " + name + " -->");
    REQUIRE(mark != text.npos);
    const auto begin = text.find("```sql\n", mark) + 7, end = text.find("```", begin);
    std::stringstream lines(text.substr(begin, end - begin));
    std::vector<std::string> out;
    for (std::string line; std::getline(lines, line);) {
        const auto word = line.find_first_not_of(' ');
        if (word == 0)
            out.push_back(line);
        else
            out.back() += " " + line.substr(word);
    }
    return out;
}

}  // namespace test_support
