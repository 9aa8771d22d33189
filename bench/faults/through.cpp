#include "faults/through.hpp"

#include <regex>

namespace holdfast::bench {

Through::Through(Deployment whole, std::uint64_t seed) : deployment(std::move(whole)) {
    if (!deployment.behind_proxies) return;
    const std::regex address("127\\.0\\.0\\.1:([0-9]+)");
    const std::string url = deployment.open;
    std::string changed;
    auto from = url.cbegin();
    for (std::sregex_iterator hit(url.begin(), url.end(), address), end; hit != end; ++hit) {
        proxies.emplace_back("127.0.0.1", static_cast<std::uint16_t>(std::stoi((*hit)[1])),
                             seed + proxies.size());
        changed.append(from, (*hit)[0].first);
        changed += "127.0.0.1:" + std::to_string(proxies.back().port());
        from = (*hit)[0].second;
    }
    deployment.open = changed.append(from, url.cend());
}

}  // namespace holdfast::bench
