#include <boost/json/serialize.hpp>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "report/report.hpp"

namespace holdfast::bench {

namespace {

constexpr std::string_view place = "/*HOLDFAST-BENCH-DATA*/";

/// Inside a script element only "</" and "<!--" could end or hide the data.
std::string for_script(const std::string& json) {
    std::string out;
    for (const char c : json) {
        if (c == '<')
            out += "\\u003c";
        else
            out += c;
    }
    return out;
}

std::string text_of(const std::filesystem::path& file) {
    std::ifstream in(file);
    std::ostringstream text;
    text << in.rdbuf();
    return in ? text.str() : std::string();
}

void write_page(const std::filesystem::path& file, const std::string& json) {
    const auto source =
        std::filesystem::read_symlink("/proc/self/exe").parent_path() / "report-template.html";
    const std::string page = text_of(source);
    if (page.empty())
        throw std::runtime_error("cannot read " + source.string() + ": build the bench again");
    std::ofstream out(file);
    out << fill_template(page, json);
    out.close();
    if (!out) throw std::runtime_error("cannot write " + file.string());
}

}  // namespace

std::string fill_template(std::string page, const std::string& json) {
    const auto at = page.find(place);
    if (at == std::string::npos)
        throw std::runtime_error("the page's template has no place for data");
    return page.replace(at, place.size(), for_script(json));
}

void write_html(const std::filesystem::path& file, const Report& report) {
    write_page(file, boost::json::serialize(to_json(report)));
}

void write_html_of(const std::filesystem::path& file, const std::filesystem::path& json) {
    read_json(json);  // what is no report has no page
    std::string text = text_of(json);
    text.erase(text.find_last_not_of('\n') + 1);
    write_page(file, text);
}

}  // namespace holdfast::bench
