// Rows that are written down, and what is said of them.
#pragma once
#include "catch.hpp"
#include "verdict.hpp"

inline holdfast::bench::Row row(const char* scenario, const char* backend, const char* variant,
                                const char* metric, double value, double x = 0) {
    holdfast::bench::Row r;
    r.scenario = scenario;
    r.backend = backend;
    r.variant = variant;
    r.metric = metric;
    r.x = x;
    r.value = r.min = r.max = value;
    r.n = 900;
    return r;
}

inline holdfast::bench::Verdict verdict(const holdfast::bench::Rows& rows, const char* id) {
    for (const holdfast::bench::Verdict& v : holdfast::bench::verdicts(rows))
        if (v.id == id) return v;
    FAIL("no verdict " << id);
    return {};
}

inline holdfast::bench::Finding finding(const holdfast::bench::Rows& rows, const char* id) {
    return verdict(rows, id).finding;
}
