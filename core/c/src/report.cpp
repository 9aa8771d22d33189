// What a client reports, as C takes it.
#include "failure.hpp"
#include "queue.hpp"
#include "sized.hpp"

namespace holdfast::c {
namespace {

int kind_of(Event::Kind kind) noexcept {
    using enum Event::Kind;
    switch (kind) {
        case waiting:
            return HF_REPORT_WAITING;
        case acquired:
            return HF_REPORT_ACQUIRED;
        case at_risk:
            return HF_REPORT_AT_RISK;
        case recovered:
            return HF_REPORT_RECOVERED;
        case lost:
            return HF_REPORT_LOST;
        case in_doubt:
            return HF_REPORT_IN_DOUBT;
        case released:
            return HF_REPORT_RELEASED;
        case warning:
            return HF_REPORT_WARNING;
        case unreachable:
            return HF_REPORT_UNREACHABLE;
        case reachable:
            return HF_REPORT_REACHABLE;
        case moved:
            return HF_REPORT_MOVED;
    }
    return 0;
}

hf_report report_of(const Event& e) {
    hf_report r = HF_REPORT;
    const Failure why(e.reason);
    r.kind = kind_of(e.kind);
    r.reason = why.code;
    r.native = why.native;
    r.token = e.token.value;
    r.took = e.took.count();
    r.left = e.left.count();
    r.dropped = e.dropped;
    write(r.name, sizeof r.name, e.name);
    write(r.owner, sizeof r.owner, e.owner);
    write(r.text, sizeof r.text, e.text.empty() ? why.words : e.text);
    return r;
}

}  // namespace
}  // namespace holdfast::c

using namespace holdfast;

int hf_queue_report(hf_queue* queue, hf_report* report) {
    int taken = 0;
    c::guarded(nullptr, [&] {
        if (const auto event = queue->queue->next_report()) {
            c::give(*report, c::report_of(*event));
            taken = 1;
        }
        return c::Failure();
    });
    return taken;
}
