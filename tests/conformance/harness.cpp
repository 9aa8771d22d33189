#include "harness.hpp"

#include <cstdlib>
#include <sstream>
#include <stdexcept>

#include "ground.hpp"

namespace suite {

std::map<std::string, Ground>& grounds() {
    static std::map<std::string, Ground> all;
    return all;
}

/// What a test asks for takes the place of what its ground sets.
std::string Harness::join(std::string url, const std::string& query) {
    if (query.empty()) return url;
    std::istringstream options(query);
    for (std::string option; std::getline(options, option, '&');) {
        const auto key = option.substr(0, option.find('=') + 1);
        const auto at = std::min(url.find('?' + key), url.find('&' + key));
        if (at == std::string::npos) continue;
        const auto end = url.find('&', at + 1);
        if (end == std::string::npos)
            url.erase(at);
        else
            url.erase(at + 1, end - at);
    }
    return url + (url.find('?') == std::string::npos ? '?' : '&') + query;
}

std::vector<std::string> Harness::names() {
    std::vector<std::string> out;
    for (const auto& [name, ground] : grounds())
        out.push_back(name);
    return out;
}

Harness& Harness::instance() {
    static const std::unique_ptr<Harness> one = [] {
        const char* wanted = std::getenv("HOLDFAST_TEST_BACKEND");
        const auto at = grounds().find(wanted == nullptr ? "" : wanted);
        if (at == grounds().end()) {
            std::string all;
            for (const auto& name : names())
                all += ' ' + name;
            throw std::runtime_error("set HOLDFAST_TEST_BACKEND to one of:" + all);
        }
        return at->second.make();
    }();
    return *one;
}

}  // namespace suite
