// Counts what the suite asserted for each case of the fault catalogue, for the table in
// docs/developing/cases.md: one line "CASE ASSERTIONS" in the file $HOLDFAST_CASE_TABLE. An
// assertion is about the subject of a test if it stands in the test's own file: what shared helpers
// assert while a test is set up is not, and a test that returns after that has asserted nothing.
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <string_view>

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

/// Of the test that runs.
std::string own_file;
std::size_t of_subject = 0;

void count_assertion(bool passed, std::string_view file) {
    if (passed && file == own_file) ++of_subject;
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
    explicit CaseTable(const Catch::IConfig* config) : EventListenerBase(config) {
        m_preferences.shouldReportAllAssertions = true;
    }
    void testCaseStarting(const Catch::TestCaseInfo& info) override {
        own_file = info.lineInfo.file;
    }
    void assertionEnded(const Catch::AssertionStats& s) override {
        count_assertion(s.assertionResult.isOk(), s.assertionResult.getSourceInfo().file);
    }
    void testCaseEnded(const Catch::TestCaseStats& s) override {
        for (const auto& tag : s.testInfo->tags)
            count(std::string(tag.original), of_subject);
        of_subject = 0;
    }
    void testRunEnded(const Catch::TestRunStats&) override { write(); }
};
#else
struct CaseTable : Catch::TestEventListenerBase {
    using TestEventListenerBase::TestEventListenerBase;
    void testCaseStarting(const Catch::TestCaseInfo& info) override {
        own_file = info.lineInfo.file;
    }
    bool assertionEnded(const Catch::AssertionStats& s) override {
        count_assertion(s.assertionResult.isOk(), s.assertionResult.getSourceInfo().file);
        return true;
    }
    void testCaseEnded(const Catch::TestCaseStats& s) override {
        for (const auto& tag : s.testInfo.tags)
            count(tag, of_subject);
        of_subject = 0;
    }
    void testRunEnded(const Catch::TestRunStats&) override { write(); }
};
#endif

CATCH_REGISTER_LISTENER(CaseTable)

}  // namespace
