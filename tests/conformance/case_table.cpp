// Counts what the suite asserted for each case of the fault catalogue, for the table in
// docs/cases.md: one line "CASE ASSERTIONS" in the file $HOLDFAST_CASE_TABLE.
#include <cstdlib>
#include <fstream>
#include <map>

// Version 2 shows its listeners only to whoever asks before the first include.
#define CATCH_CONFIG_EXTERNAL_INTERFACES
#include "catch.hpp"

namespace {

std::map<std::string, std::size_t>& counts() {
    static std::map<std::string, std::size_t> all;
    return all;
}

void count(const std::string& tag, std::size_t passed) {
    if (tag.size() >= 2 && tag[0] == 'T' && tag[1] >= '0' && tag[1] <= '9') counts()[tag] += passed;
}

void write() {
    const char* path = std::getenv("HOLDFAST_CASE_TABLE");
    if (path == nullptr) return;
    std::ofstream out(path);
    for (const auto& [name, n] : counts())
        if (n > 0) out << name << ' ' << n << '\n';
}

#if __has_include(<catch2/catch_all.hpp>)
struct CaseTable : Catch::EventListenerBase {
    using EventListenerBase::EventListenerBase;
    void testCaseEnded(const Catch::TestCaseStats& s) override {
        for (const auto& tag : s.testInfo->tags)
            count(std::string(tag.original), s.totals.assertions.passed);
    }
    void testRunEnded(const Catch::TestRunStats&) override { write(); }
};
#else
struct CaseTable : Catch::TestEventListenerBase {
    using TestEventListenerBase::TestEventListenerBase;
    void testCaseEnded(const Catch::TestCaseStats& s) override {
        for (const auto& tag : s.testInfo.tags)
            count(tag, s.totals.assertions.passed);
    }
    void testRunEnded(const Catch::TestRunStats&) override { write(); }
};
#endif

CATCH_REGISTER_LISTENER(CaseTable)

}  // namespace
