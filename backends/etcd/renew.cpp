// A renewal: another lease for the key.
#include "errors.hpp"
#include "holdfast/spi/drift.hpp"
#include "operations.hpp"

namespace holdfast::etcd {

using Renewal = spi::Held::Renewal;

Renew::Renew(spi::Held& h)
    : Operation(state_of(h.place), h.ttl + h.lock_delay, h.deadline), held_(h) {
    h.renewal = Renewal::unknown;
    // A downgrade writes marks, which no transaction may write twice.
    want(Step::renew, Needs::young, !place->marks.empty() && h.units != place->units);
}

Transaction Renew::request() {
    if (!change_) change_.emplace(*place, lease(), held_.units, false);
    return change_->request();
}

void Renew::answered(const Result& r, const RequestInfo& went) {
    using enum Change::Outcome;
    const auto outcome = change_->answered(r, went.revision);
    held_.asked = place->asked;
    switch (outcome) {
        case again:
            return;
        case done:
            held_.renewal = Renewal::renewed;
            held_.renewed_base = lease().base;
            held_.renewed_ttl = lease().believed(held_.ttl, held_.lock_delay);
            place->valid_until = spi::valid_until(lease().base, *held_.renewed_ttl);
            break;
        case other_kind:  // of a grant only
        case gone:
            held_.renewal = Renewal::lost;
            held_.renewal_error = make_error_code(errc::lost);
            held_.detail = "its key is not there any more";
            break;
        case revoked:
            held_.renewal = Renewal::lost;
            held_.renewal_error = make_error_code(errc::revoked);
            break;
        case refused:
            held_.renewal_error = make(Error::refused);
            held_.detail = held_.renewal_error.message();
            break;
    }
    want(Step::over);
}

void Renew::missing(const error_code& why, const RequestInfo& went) {
    held_.renewal_error = why;
    held_.detail = went.detail;
    want(Step::over);
}

}  // namespace holdfast::etcd
