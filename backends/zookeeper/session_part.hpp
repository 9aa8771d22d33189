// What the parts of a session have of it.
#pragma once
#include "handle.hpp"

namespace holdfast::zookeeper {

class Session;

/// A part lives as long as its session. It reaches the other parts through it.
class SessionPart {
public:
    SessionPart(Session& s, Shared& shared, Handle& h) : session_(s), shared_(shared), handle_(h) {}
    SessionPart(const SessionPart&) = delete;
    SessionPart& operator=(const SessionPart&) = delete;

protected:
    ~SessionPart() = default;
    /// For a request: calls `f` with its answer if the session is still there.
    template <class F>
    Handle::Then when_answered(F f) const;

    Session& session_;
    Shared& shared_;
    Handle& handle_;
};

}  // namespace holdfast::zookeeper
