// Checks the files of one bench run: report_check [--caught] FILE.json [FILE.html]. With --caught
// it also checks that nothing that was said of runs was refuted, that every set-up that is there to
// be caught was, and that a quick run, which has fewer than ten runs, confirms nothing about
// faults.
#include <boost/json.hpp>
#include <cstdio>
#include <fstream>
#include <set>
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

/// Claims that only runs can confirm.
const std::set<std::string> rest_on_runs{"C9",   "C10", "C11",  "C11a", "C12",  "C13",  "C14",
                                         "C15",  "C16", "C17",  "C18",  "C18a", "C18b", "C19",
                                         "C19a", "C20", "C20a", "C25",  "C27",  "C31"};
/// One stall of the machine refutes these: a lease of theirs is lost to it.
const std::set<std::string> a_stall_refutes{"C14", "C31"};
/// An order of scores comes out as it is measured.
const std::set<std::string> may_be_false{"C21"};

/// What the run did not show, or showed too easily.
std::vector<std::string> not_caught(const boost::json::value& report) {
    using boost::json::value_to;
    std::vector<std::string> out;
    std::set<std::string> of_runs;
    for (const auto& row : report.at("rows").as_array()) {
        const auto text = [&](const char* key) { return value_to<std::string>(row.at(key)); };
        const bool runs = text("unit").ends_with(" runs") || text("metric").starts_with("runs ");
        if (runs) of_runs.insert(text("scenario"));
        if (text("metric") == "runs with two holders" &&
            text("note").find("there to be caught") != std::string::npos &&
            row.at("value").to_number<double>() < 1)
            out.push_back(text("scenario") + ": " + text("variant") + " was not caught");
    }
    const bool quick = report.at("environment").at("effort") == "quick";
    for (const auto& v : report.at("verdicts").as_array()) {
        const auto id = value_to<std::string>(v.at("id"));
        const auto figure = value_to<std::string>(v.at("figure"));
        if (of_runs.contains(id) && !a_stall_refutes.contains(id) && !may_be_false.contains(id) &&
            v.at("finding") == "refuted")
            out.push_back(id + " is refuted: " + figure);
        if (quick && rest_on_runs.contains(id) && v.at("finding") == "confirmed")
            out.push_back(id + " is confirmed by a quick run: " + figure);
    }
    return out;
}

}  // namespace

int main(int argc, char** argv) try {
    const bool caught = argc > 1 && std::string_view(argv[1]) == "--caught";
    if (caught) --argc, ++argv;
    if (argc < 2) return 64;
    const auto report = boost::json::parse(read(argv[1]));
    int wrong = 0;
    for (const auto& what : holdfast::bench::check_report(report)) {
        std::printf("%s: %s\n", argv[1], what.c_str());
        ++wrong;
    }
    if (caught)
        for (const auto& what : not_caught(report)) {
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
