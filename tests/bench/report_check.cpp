// Checks the files of one bench run: report_check FILE.json [FILE.html].
#include <boost/json.hpp>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "report/report.hpp"

namespace {

std::string read(const char* file) {
    std::ifstream in(file);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
}

/// The data inside the page; empty when there is none.
std::string data_of(const std::string& page) {
    const std::string open = "<script type=\"application/json\" id=\"data\">";
    const auto from = page.find(open);
    if (from == std::string::npos) return {};
    const auto to = page.find("</script>", from);
    return page.substr(from + open.size(), to - from - open.size());
}

}  // namespace

int main(int argc, char** argv) try {
    if (argc < 2) return 64;
    const auto report = boost::json::parse(read(argv[1]));
    int wrong = 0;
    for (const auto& what : holdfast::bench::check_report(report)) {
        std::printf("%s: %s\n", argv[1], what.c_str());
        ++wrong;
    }
    if (argc > 2) {
        const std::string page = read(argv[2]);
        if (boost::json::parse(data_of(page)) != report) {
            std::printf("%s: other data than %s\n", argv[2], argv[1]);
            ++wrong;
        }
        // ECharts' own text may name web addresses; loading one takes an attribute.
        for (const char* load : {"src=\"http", "href=\"http", "url(http", "@import"})
            if (page.find(load) != std::string::npos) {
                std::printf("%s: needs the network: %s\n", argv[2], load);
                ++wrong;
            }
    }
    return wrong == 0 ? 0 : 1;
} catch (const std::exception& error) {
    std::printf("report_check: %s\n", error.what());
    return 1;
}
