#include "deployment.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <stdexcept>

namespace holdfast::deployments {

namespace {

std::map<std::string, Add::Start, std::less<>>& starts() {
    static std::map<std::string, Add::Start, std::less<>> all;
    return all;
}

}  // namespace

Add::Add(const char* name, Start start) {
    starts().emplace(name, std::move(start));
}

std::string hosts(const std::vector<std::uint16_t>& ports) {
    std::string out;
    for (const auto port : ports)
        out += fmt::format("{}127.0.0.1:{}", out.empty() ? "" : ",", port);
    return out;
}

std::chrono::milliseconds outage(Random& random) {
    return std::uniform_int_distribution(0, 9)(random) == 0 ? pick(random, 3000, 5000)
                                                            : pick(random, 50, 1500);
}

std::unique_ptr<Link> Deployment::link() const {
    auto out = std::make_unique<Link>();
    for (const auto port : ports())
        out->emplace_back(port);
    return out;
}

std::string Deployment::url(const Link& link) const {
    std::vector<std::uint16_t> through;
    for (const auto& proxy : link)
        through.push_back(proxy.port());
    return url(through);
}

std::vector<std::string> names() {
    std::vector<std::string> out;
    for (const auto& [name, start] : starts())
        out.push_back(name);
    return out;
}

std::unique_ptr<Deployment> start(std::string_view name) {
    const auto at = starts().find(name);
    if (at != starts().end()) return at->second();
    throw std::invalid_argument(
        fmt::format("no backend '{}'; choose one of {}", name, fmt::join(names(), ", ")));
}

}  // namespace holdfast::deployments
