// What an examination of a deployment found. `holdfast doctor` prints it; Client::probe and
// `require` use it.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/capabilities.hpp"
#include "holdfast/export.hpp"

namespace holdfast {

enum class Verdict : std::uint8_t {
    sound,    ///< checked, and right
    slow,     ///< costs time, or refuses locks too early; never two holders
    unknown,  ///< could not be checked: as bad as its consequence
    unsafe    ///< two holders are possible, or others may break locks
};

/// What one check found at one server, or about the deployment.
struct Finding {
    std::string id;  ///< "redis.fsync"; the same in later versions
    Verdict verdict = Verdict::sound;
    std::string where;        ///< the server; empty: the whole deployment
    std::string found;        ///< "appendfsync is everysec"; when sound, a fact or empty
    std::string consequence;  ///< what it can cost; empty when sound
    std::string remedy;       ///< what to do; empty when sound
};

struct Examination {
    Capabilities capabilities;
    std::vector<Finding> findings;  ///< of every check that applies, sound ones too
    std::string server = {};        ///< that serves now: "db1:5432 (10.0.0.1)"; may be empty
    /// The worst verdict of all findings.
    Verdict verdict() const noexcept {
        Verdict worst = Verdict::sound;
        for (const Finding& f : findings)
            worst = f.verdict > worst ? f.verdict : worst;
        return worst;
    }
};

/// "sound", "slow", "unknown" or "unsafe".
HOLDFAST_EXPORT std::string_view to_string(Verdict) noexcept;
/// "WHERE: FOUND: CONSEQUENCE".
HOLDFAST_EXPORT std::string to_text(const Finding&);

}  // namespace holdfast
