// What a backend on a table tells the engine, for tests that are the engine.
#pragma once
#include <new>
#include <string>
#include <string_view>

#include "holdfast/spi/backend.hpp"

namespace sql_tests {

struct Events final : holdfast::spi::BackendEvents {
    void wake(std::string_view) override {}
    void at_risk(std::string_view) override {}
    void lost(std::string_view, holdfast::error_code) override {}
    void warn(std::string) override {
        ++warnings;
        if (no_memory) throw std::bad_alloc();
    }
    int warnings = 0;
    bool no_memory = false;
};

}  // namespace sql_tests
