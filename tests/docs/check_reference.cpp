// docs/doctor.md against the backends' checks.
//   check_reference --write FILE | --compare FILE
// The page's first part is written by hand, up to the line `<!-- checks -->`.
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/spi/reference.hpp"
#include "holdfast/spi/registry.hpp"

namespace {

using holdfast::spi::Check;
using holdfast::spi::table_cell;

constexpr std::string_view mark = "<!-- checks -->\n";

std::string table(const std::string& title, const std::vector<Check>& checks) {
    std::string text =
        "\n## " + title + "\n\n| check | what it can cost | what to do |\n|---|---|---|\n";
    for (const Check& c : checks)
        text += "| `" + std::string(c.id) + "` | " + table_cell(c.consequence) + " | " +
                table_cell(c.remedy) + " |\n";
    return text;
}

std::string reference() {
    std::string text;
    for (const auto& backend : holdfast::spi::Registry::linked().all())
        if (!backend->checks.empty()) text += table(backend->name, backend->checks);
    return text + table("Every backend", holdfast::spi::local_checks());
}

std::string read(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) return 64;
    const std::string_view verb = argv[1];
    const std::string have = read(argv[2]);
    const auto end = have.find(mark);
    if (end == std::string::npos) {
        std::cout << argv[2] << ": no line " << mark;
        return 1;
    }
    const std::string want = have.substr(0, end + mark.size()) + reference();
    if (verb == "--write") return (std::ofstream(argv[2]) << want) ? 0 : 1;
    if (have == want) return 0;
    std::cout << argv[2] << " differs from the backends' checks; write it anew: "
              << "cmake --build build/dev --target docs_doctor\n";
    return 1;
}
