// {words} in a statement's text.
#pragma once
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::sql {

/// Puts in what {words} stand for. What is put in may have {words}, too; {1}, {2}, ... in it are
/// what follows the word where it is used. {} stays as it is.
class Words {
public:
    using Meanings = std::vector<std::pair<std::string_view, std::string>>;
    using Arguments = std::vector<std::string_view>;

    /// `names`: of what may have anything in it, and is put in as it is.
    explicit Words(Meanings all, std::vector<std::string_view> names = {"comment"})
        : all_(std::move(all)), names_(std::move(names)) {}

    std::string complete(std::string_view pattern, const Arguments& arguments = {}) const {
        std::string out;
        while (!pattern.empty()) {
            const auto open = std::min(pattern.find('{'), pattern.size());
            out += pattern.substr(0, open);
            pattern.remove_prefix(open);
            if (pattern.empty()) break;
            const auto close = pattern.find('}');
            const auto within = pattern.substr(1, close - 1);
            pattern.remove_prefix(close + 1);
            out += within.empty() ? "{}" : meaning(within, arguments);
        }
        return out;
    }

private:
    std::string meaning(std::string_view within, const Arguments& outer) const {
        if (within.size() == 1 && within[0] >= '1' && within[0] <= '9')
            return std::string(outer.at(static_cast<std::size_t>(within[0] - '1')));
        Arguments own;
        const auto word = within.substr(0, within.find(' '));
        while (within.find(' ') != within.npos) {
            within.remove_prefix(within.find(' ') + 1);
            own.push_back(within.substr(0, within.find(' ')));
        }
        const auto at = std::find_if(all_.begin(), all_.end(),
                                     [&](const auto& one) { return one.first == word; });
        const bool name = std::find(names_.begin(), names_.end(), word) != names_.end();
        return name ? at->second : complete(at->second, own);
    }

    const Meanings all_;
    const std::vector<std::string_view> names_;
};

}  // namespace holdfast::sql
