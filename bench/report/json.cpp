#include <boost/json.hpp>
#include <cmath>
#include <fstream>
#include <stdexcept>

#include "report/report.hpp"

namespace holdfast::bench {

namespace json = boost::json;

namespace {

json::object json_of(const Row& row) {
    return {{"scenario", row.scenario},
            {"backend", row.backend},
            {"variant", row.variant},
            {"metric", row.metric},
            {"x", row.x},
            {"value", row.value},
            {"unit", row.unit},
            {"n", row.n},
            {"min", row.min},
            {"max", row.max},
            {"seed", row.seed},
            {"note", row.note},
            {"status", to_string(row.status)}};
}

json::array verdicts_of(const Rows& rows) {
    json::array all;
    for (const Verdict& v : verdicts(rows))
        all.push_back({{"id", v.id},
                       {"claim", v.claim},
                       {"rule", v.rule},
                       {"finding", to_string(v.finding)},
                       {"figure", v.figure}});
    return all;
}

json::array targets_of(const Rows& rows) {
    json::array all;
    for (const Target& t : targets(rows))
        all.push_back({{"what", t.what},
                       {"side", to_string(t.side)},
                       {"limit", t.limit},
                       {"unit", t.unit},
                       {"measured", t.measured},
                       {"value", t.value},
                       {"met", t.met()}});
    return all;
}

Row row_of(const json::object& o) {
    Row row;
    const auto text = [&](const char* key) { return std::string(o.at(key).as_string()); };
    const auto number = [&](const char* key) { return o.at(key).to_number<double>(); };
    row.scenario = text("scenario");
    row.backend = text("backend");
    row.variant = text("variant");
    row.metric = text("metric");
    row.x = number("x");
    row.value = number("value");
    row.unit = text("unit");
    row.n = o.at("n").to_number<std::uint64_t>();
    row.min = number("min");
    row.max = number("max");
    row.seed = o.at("seed").to_number<std::uint64_t>();
    row.note = text("note");
    const auto status = text("status");
    if (status == "failed")
        row.status = Status::failed;
    else if (status == "violated")
        row.status = Status::violated;
    else if (status != "ok")
        throw std::runtime_error("unknown status " + status);
    return row;
}

void check_row(const Row& row, std::size_t number, std::vector<std::string>& wrong) {
    const auto complain = [&](const std::string& what) {
        wrong.push_back("row " + std::to_string(number) + " (" + row.scenario + " " + row.backend +
                        " " + row.metric + "): " + what);
    };
    if (row.scenario.empty() || row.metric.empty()) complain("nameless");
    if (!std::isfinite(row.value)) complain("not a number");
    const bool timeline = row.metric.rfind("timeline: ", 0) == 0;
    if (!timeline && row.status == Status::ok && (row.min > row.value || row.value > row.max))
        complain("the value lies outside of its own spread");
    if (row.status != Status::ok && row.note.empty()) complain("fails without saying why");
}

}  // namespace

json::value to_json(const Report& report) {
    json::object environment;
    for (const auto& [key, value] : report.environment)
        environment[key] = value;
    json::array rows, methods;
    for (const Row& row : report.rows)
        rows.push_back(json_of(row));
    for (const Method& m : report.methods)
        methods.push_back({{"id", m.id}, {"title", m.title}, {"text", m.text}});
    return json::object{{"format", 1},
                        {"seed", report.seed},
                        {"seconds", report.seconds},
                        {"partial", report.partial},
                        {"exit_code", exit_code(report.rows)},
                        {"environment", std::move(environment)},
                        {"methods", std::move(methods)},
                        {"verdicts", verdicts_of(report.rows)},
                        {"targets", targets_of(report.rows)},
                        {"rows", std::move(rows)}};
}

std::vector<std::string> check_report(const json::value& report) try {
    std::vector<std::string> wrong;
    const json::object& o = report.as_object();
    if (o.at("format").to_number<int>() != 1) wrong.emplace_back("unknown format");
    for (const char* key : {"seed", "seconds", "partial", "environment", "methods"})
        if (!o.contains(key)) wrong.push_back(std::string("no member ") + key);
    Rows rows;
    for (const json::value& row : o.at("rows").as_array()) {
        rows.push_back(row_of(row.as_object()));
        check_row(rows.back(), rows.size(), wrong);
    }
    if (rows.empty()) wrong.emplace_back("no rows");
    if (o.at("verdicts") != json::value(verdicts_of(rows)))
        wrong.emplace_back("the verdicts do not follow from the rows");
    if (o.at("exit_code").to_number<int>() != exit_code(rows))
        wrong.emplace_back("the exit code does not follow from the rows");
    return wrong;
} catch (const std::exception& error) {
    return {std::string("not a report: ") + error.what()};
}

Report read_json(const std::filesystem::path& file) try {
    std::ifstream in(file);
    const std::string text(std::istreambuf_iterator<char>(in), {});
    if (!in) throw std::runtime_error("cannot be read");
    const json::value all = json::parse(text);
    const json::object& o = all.as_object();
    if (o.at("format").to_number<int>() != 1) throw std::runtime_error("unknown format");
    Report report;
    for (const json::value& row : o.at("rows").as_array())
        report.rows.push_back(row_of(row.as_object()));
    for (const auto& [key, value] : o.at("environment").as_object())
        report.environment[key] = std::string(value.as_string());
    report.seed = o.at("seed").to_number<std::uint64_t>();
    report.seconds = o.at("seconds").to_number<double>();
    report.partial = o.at("partial").as_bool();
    return report;
} catch (const std::exception& error) {
    throw std::runtime_error(file.string() + ": not a report of this bench: " + error.what());
}

void write_json(const std::filesystem::path& file, const Report& report) {
    std::ofstream out(file);
    out << json::serialize(to_json(report)) << '\n';
    out.close();
    if (!out) throw std::runtime_error("cannot write " + file.string());
}

}  // namespace holdfast::bench
