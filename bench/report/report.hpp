// What the outside gets to see of a run. Everything comes from the rows and the environment.
#pragma once
#include <boost/json/value.hpp>
#include <cstdio>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "measure/row.hpp"
#include "verdict.hpp"

namespace holdfast::bench {

/// How a scenario was measured, for people.
struct Method {
    std::string id, title, text;
};

struct Report {
    Rows rows;
    std::map<std::string, std::string> environment;
    std::vector<Method> methods;
    std::uint64_t seed = 0;
    double seconds = 0;
    bool partial = false;  ///< ended by ^C
};

/// The whole report as JSON: format, environment, rows, verdicts, targets, methods, exit code.
boost::json::value to_json(const Report&);

/// What is wrong with a report read back from JSON: missing members, rows without a figure,
/// verdicts or an exit code that its own rows do not give. Empty: nothing.
std::vector<std::string> check_report(const boost::json::value&);

/// The rows and the environment of what write_json wrote, also by an older bench whose verdicts
/// were made by other rules. Errors: std::runtime_error, which names the file.
Report read_json(const std::filesystem::path&);

/// Tables COST, SAFETY and VERDICTS.
/// What to know first, on one screen.
void print_screen(std::FILE*, const Report&);
/// All of it.
void print_tables(std::FILE*, const Report&);

/// Writes the JSON file. Errors: std::runtime_error.
void write_json(const std::filesystem::path&, const Report&);
/// Writes one page that needs nothing else, from the template beside the program.
/// Errors: std::runtime_error.
void write_html(const std::filesystem::path&, const Report&);
/// The same of a run that write_json kept, figure by figure as it is there. Errors as above, and
/// those of read_json.
void write_html_of(const std::filesystem::path& page, const std::filesystem::path& json);

/// The page for the template and the data; the data's place is marked in the template.
std::string fill_template(std::string page, const std::string& json);

}  // namespace holdfast::bench
