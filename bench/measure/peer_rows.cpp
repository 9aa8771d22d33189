#include "measure/peer_rows.hpp"

#include <boost/json.hpp>
#include <cmath>

namespace holdfast::bench {

namespace json = boost::json;

namespace {

std::string shortened(std::string_view line) {
    return std::string(line.substr(0, 80)) + (line.size() > 80 ? " ..." : "");
}

PeerSaid said(const json::object& o) {
    using enum PeerSaid::Kind;
    const auto text = [&](const char* key) { return std::string(o.at(key).as_string()); };
    PeerSaid all;
    if (o.contains("failed")) {
        all.kind = failed;
        all.words = text("failed");
    } else if (o.contains("missing")) {
        all.kind = missing;
        all.words = text("missing");
    } else if (o.contains("version")) {
        all.kind = ready;
        all.version = text("version");
        all.settings = text("settings");
        if (all.version.empty()) throw PeerError("a peer without a version");
    } else if (o.contains("held")) {
        all.kind = o.at("held").as_bool() ? held : freed;
    } else {
        all.kind = block;
        for (const json::value& us : o.at("us").as_array()) {
            all.us.push_back(us.to_number<double>());
            if (!std::isfinite(all.us.back()) || all.us.back() <= 0)
                throw PeerError("a cycle that took no time");
        }
        if (all.us.empty()) throw PeerError("a block without a cycle");
    }
    return all;
}

}  // namespace

PeerSaid parse_peer(std::string_view line) try {
    return said(json::parse(line).as_object());
} catch (const PeerError& error) {
    throw PeerError(std::string(error.what()) + ": " + shortened(line));
} catch (const std::exception&) {
    throw PeerError("it said what is no answer: " + shortened(line));
}

PeerSaid parse_peer(std::string_view line, PeerSaid::Kind wanted) {
    PeerSaid all = parse_peer(line);
    if (all.kind == wanted) return all;
    if (all.kind == PeerSaid::Kind::failed) throw PeerError(all.words);
    throw PeerError("it said something else than it was asked: " + shortened(line));
}

std::string peer_variant(const std::string& name, const std::string& version) {
    return "peer: " + name + (version.empty() ? "" : " " + version);
}

Rows peer_rows(const PeerFigures& figures) {
    Rows rows;
    if (figures.p50_us.empty() || figures.all.count() == 0) return rows;
    Row row;
    row.scenario = peers_scenario;
    row.backend = figures.backend;
    row.variant = figures.variant;
    row.n = figures.all.count();
    row.note = figures.note;
    row.x = 1;
    const auto add = [&](const char* metric, const char* unit, const Spread& spread) {
        row.metric = metric;
        row.unit = unit;
        row.value = spread.median;
        row.min = spread.min;
        row.max = spread.max;
        rows.push_back(row);
    };
    add("p50", "us", spread_of(figures.p50_us));
    const double p99 = figures.all.quantile_us(0.99);
    add("p99", "us", {p99, p99, p99});
    if (!figures.over_floor.empty()) add(peer_over_floor, "x", spread_of(figures.over_floor));
    return rows;
}

Row missing_peer(const std::string& backend, const std::string& name, const std::string& from) {
    Row row;
    row.scenario = peers_scenario;
    row.backend = backend;
    row.variant = peer_variant(name, {});
    row.metric = peer_not_installed;
    // Not a measurement: the metric is true, which is one, so that nobody reads a cost of zero.
    row.value = row.min = row.max = 1;
    row.note = "not installed (" + from + ")";
    return row;
}

}  // namespace holdfast::bench
