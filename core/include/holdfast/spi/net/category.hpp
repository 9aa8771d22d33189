// A backend's own errors, as a table.
#pragma once
#include <span>
#include <string>

#include "holdfast/error.hpp"

namespace holdfast::spi::net {

/// Condition: the server runs and says why it refuses. The text of the error says what to do.
HOLDFAST_EXPORT boost::system::error_condition answered() noexcept;

/// One code: its condition for callers, its text for people, and whether the server said so.
struct Meaning {
    enum Source : unsigned char { observed, said };
    template <class Code>
    constexpr Meaning(Code c, errc m, const char* w = nullptr, Source s = observed) noexcept
        : code(static_cast<int>(c)), means(m), words(w), source(s) {}
    int code;
    errc means;
    const char* words;
    Source source;
};

/// Codes outside the table mean `unavailable`; `others` gives the texts that the table lacks.
class Category final : public boost::system::error_category {
public:
    Category(const char* name, std::span<const Meaning> table,
             std::string (*others)(int code) = nullptr) noexcept
        : name_(name), table_(table), others_(others) {}

    const char* name() const noexcept override { return name_; }
    std::string message(int code) const override {
        const Meaning* m = find(code);
        if (m != nullptr && m->words != nullptr) return m->words;
        return others_ != nullptr ? others_(code) : "unknown error";
    }
    boost::system::error_condition default_error_condition(int code) const noexcept override {
        const Meaning* m = find(code);
        return make_error_condition(m != nullptr ? m->means : errc::unavailable);
    }
    bool equivalent(int code,
                    const boost::system::error_condition& condition) const noexcept override {
        if (condition != answered()) return default_error_condition(code) == condition;
        const Meaning* m = find(code);
        return m != nullptr && m->source == Meaning::said;
    }

private:
    const Meaning* find(int code) const noexcept {
        for (const Meaning& m : table_)
            if (m.code == code) return &m;
        return nullptr;
    }
    const char* name_;
    std::span<const Meaning> table_;
    std::string (*others_)(int);
};

}  // namespace holdfast::spi::net
