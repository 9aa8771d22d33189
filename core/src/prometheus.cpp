#include "holdfast/prometheus.hpp"

#include <algorithm>
#include <stdexcept>
#include <string_view>

#include "config/text.hpp"
#include "holdfast/spi/safe_text.hpp"

namespace holdfast {
namespace {

struct Number {
    std::string_view name, help;
    std::uint64_t Stats::*value;
};
constexpr Number counters[] = {
    {"acquired", "Leases granted.", &Stats::acquired},
    {"contended", "Acquisitions that ended because another client held the lock.",
     &Stats::contended},
    {"cancelled", "Acquisitions ended by their caller.", &Stats::cancelled},
    {"failed", "Acquisitions that ended with any other error.", &Stats::failed},
    {"attempts", "Tries to acquire at the server; a waiting acquisition makes many.",
     &Stats::attempts},
    {"in_doubt", "Tries whose answer never came.", &Stats::in_doubt},
    {"released", "Releases that the server answered.", &Stats::released},
    {"renewals", "Renewals that the server answered.", &Stats::renewals},
    {"renewals_failed", "Renewals that were not answered in time.", &Stats::renewals_failed},
    {"requests", "Requests sent to the server.", &Stats::requests},
    {"moves", "Times that other servers took over.", &Stats::moves}};

constexpr Number gauges[] = {{"waiting", "Acquisitions that wait now.", &Stats::waiting},
                             {"held", "Leases held now.", &Stats::held}};

struct Loss {
    std::string_view reason;
    std::uint64_t Stats::Losses::*value;
};
constexpr Loss reasons[] = {
    {"expired", &Stats::Losses::expired}, {"gone", &Stats::Losses::gone},
    {"revoked", &Stats::Losses::revoked}, {"max_hold", &Stats::Losses::max_hold},
    {"closed", &Stats::Losses::closed},   {"other", &Stats::Losses::other}};

struct Times {
    std::string_view name, help;
    Histogram Stats::*value;
};
constexpr Times histograms[] = {
    {"wait_seconds", "From the request of an acquisition until its grant.", &Stats::wait_time},
    {"hold_seconds", "From a grant until the release or the loss of the lease.", &Stats::hold_time},
    {"renewal_seconds", "From the request of a renewal until its answer.", &Stats::renewal_time}};

/// A decimal number with at least one digit after the point, as OpenMetrics writes bounds.
std::string in_seconds(std::chrono::nanoseconds t) {
    constexpr std::int64_t billion = 1'000'000'000;
    std::string fraction = std::to_string(t.count() % billion);
    fraction.insert(0, 9 - fraction.size(), '0');
    fraction.erase(std::max<std::size_t>(fraction.find_last_not_of('0') + 1, 1));
    return std::to_string(t.count() / billion) + '.' + fraction;
}

void refuse_label(const std::string& name, const std::string& why) {
    throw std::invalid_argument("label " + config::in_quotes(name) + ": " + why);
}

void check_labels(const MetricLabels& labels) {
    constexpr std::string_view digits = "0123456789";
    constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    for (auto at = labels.begin(); at != labels.end(); ++at) {
        const std::string& name = at->first;
        const bool plain = std::all_of(name.begin(), name.end(), [&](char c) {
            return letters.find(c) != std::string_view::npos ||
                   digits.find(c) != std::string_view::npos;
        });
        if (!plain || name.empty() || digits.find(name.front()) != std::string_view::npos)
            refuse_label(name, "use letters, digits and _, and no digit first");
        if (name.starts_with("__"))
            refuse_label(name, "names that begin with __ are Prometheus' own");
        if (name == "le" || name == "reason") refuse_label(name, "Holdfast sets this one itself");
        if (std::any_of(labels.begin(), at, [&](const auto& l) { return l.first == name; }))
            refuse_label(name, "it is there twice");
    }
}

/// `a="1",b="2"`, in the order of the names.
std::string label_text(MetricLabels labels) {
    check_labels(labels);
    std::sort(labels.begin(), labels.end());
    std::string out;
    for (const auto& [name, value] : labels) {
        out += (out.empty() ? "" : ",") + name + "=\"";
        for (const char c : spi::clean_utf8(value))
            if (c == '\n')
                out += "\\n";
            else if (c == '\0')
                out += "\xEF\xBF\xBD";
            else
                out += (c == '"' || c == '\\' ? "\\" : "") + std::string(1, c);
        out += '"';
    }
    return out;
}

/// The text of one call, family by family.
class Page {
public:
    explicit Page(std::span<const LabelledStats> clients) : clients_(clients) {
        for (const LabelledStats& c : clients) {
            std::string text = label_text(c.labels);
            if (std::find(labels_.begin(), labels_.end(), text) != labels_.end())
                throw std::invalid_argument("two clients have the same labels {" + text +
                                            "}: give each a label that tells it from the other");
            labels_.push_back(std::move(text));
        }
    }

    void family(std::string_view name, std::string_view type, std::string_view help,
                std::string_view unit = {}) {
        family_ = "holdfast_" + std::string(name);
        describe("TYPE", type);
        if (!unit.empty()) describe("UNIT", unit);
        describe("HELP", help);
    }
    void sample(std::size_t client, std::string_view suffix, const std::string& value,
                std::string label = {}) {
        if (!label.empty() && !labels_[client].empty()) label.insert(0, 1, ',');
        const std::string all = labels_[client] + label;
        out_ += family_;
        out_ += suffix;
        if (!all.empty()) out_ += '{' + all + '}';
        out_ += ' ' + value + '\n';
    }
    void histogram(std::size_t client, const Histogram& h) {
        std::uint64_t so_far = 0;
        for (std::size_t i = 0; i < h.buckets.size(); ++i) {
            const bool last = i == Histogram::bounds.size();
            so_far += h.buckets[i];
            sample(client, "_bucket", std::to_string(so_far),
                   "le=\"" + (last ? "+Inf" : in_seconds(Histogram::bounds[i])) + '"');
        }
        sample(client, "_count", std::to_string(so_far));
        sample(client, "_sum", in_seconds(h.sum));
    }
    template <class Write>
    void each(Write write) {
        for (std::size_t i = 0; i < clients_.size(); ++i)
            write(i, clients_[i].stats);
    }
    std::string text() && { return std::move(out_) + "# EOF\n"; }

private:
    void describe(std::string_view what, std::string_view text) {
        out_ += "# ";
        out_ += what;
        out_ += ' ' + family_ + ' ';
        out_ += text;
        out_ += '\n';
    }

    std::span<const LabelledStats> clients_;
    std::vector<std::string> labels_;
    std::string family_, out_;
};

}  // namespace

std::string prometheus_text(const Stats& stats, const MetricLabels& labels) {
    const LabelledStats one{labels, stats};
    return prometheus_text(std::span(&one, 1));
}

std::string prometheus_text(std::span<const LabelledStats> clients) {
    Page page(clients);
    for (const Number& c : counters) {
        page.family(c.name, "counter", c.help);
        page.each([&](std::size_t i, const Stats& s) {
            page.sample(i, "_total", std::to_string(s.*c.value));
        });
    }
    page.family("lost", "counter", "Leases lost, by reason.");
    page.each([&](std::size_t i, const Stats& s) {
        for (const Loss& l : reasons)
            page.sample(i, "_total", std::to_string(s.losses.*l.value),
                        "reason=\"" + std::string(l.reason) + '"');
    });
    for (const Number& g : gauges) {
        page.family(g.name, "gauge", g.help);
        page.each(
            [&](std::size_t i, const Stats& s) { page.sample(i, {}, std::to_string(s.*g.value)); });
    }
    for (const Times& t : histograms) {
        page.family(t.name, "histogram", t.help, "seconds");
        page.each([&](std::size_t i, const Stats& s) { page.histogram(i, s.*t.value); });
    }
    return std::move(page).text();
}

}  // namespace holdfast
