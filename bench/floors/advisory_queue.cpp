#include "floors/advisory_queue.hpp"

#include <utility>

#include "bench.hpp"
#include "measure/loop.hpp"

namespace holdfast::bench {

namespace {

constexpr const char* lock = "lock";
constexpr const char* unlock = "unlock";

[[noreturn]] void fail(const Libpq& connection) {
    throw SelfCheck(std::string("advisory queue: ") + PQerrorMessage(connection.get()));
}

}  // namespace

AdvisoryQueue::AdvisoryQueue(const std::string& url, std::size_t waiters) {
    for (std::size_t i = 0; i <= waiters; ++i) {
        One& one = all_.emplace_back(loop_, url);
        one.connection.prepare(lock, "SELECT pg_advisory_lock(4712)");
        one.connection.prepare(unlock, "SELECT pg_advisory_unlock(4712)");
    }
    for (One& one : all_)
        send(one, lock);
}

AdvisoryQueue::~AdvisoryQueue() {
    for (One& one : all_)
        one.readable.release();  // libpq closes it
}

void AdvisoryQueue::send(One& one, const char* statement) {
    ++now_.requests;
    if (PQsendQueryPrepared(one.connection.get(), statement, 0, nullptr, nullptr, nullptr, 0) != 1)
        fail(one.connection);
    await(one);
}

void AdvisoryQueue::await(One& one) {
    one.readable.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                            [this, &one](const error_code& ec) {
                                if (!ec) take(one);
                            });
}

void AdvisoryQueue::take(One& one) {
    PGconn* connection = one.connection.get();
    if (PQconsumeInput(connection) != 1) fail(one.connection);
    std::string value;
    while (PQisBusy(connection) == 0) {
        PGresult* result = PQgetResult(connection);
        if (result == nullptr) return answered(one, value);
        const bool well = PQresultStatus(result) == PGRES_TUPLES_OK;
        if (well) value = PQgetvalue(result, 0, 0);
        PQclear(result);
        if (!well) fail(one.connection);
    }
    await(one);
}

void AdvisoryQueue::answered(One& one, const std::string& value) {
    if (one.holds) {
        if (value != "t") throw SelfCheck("advisory queue: the lock was not held");
        one.holds = false;
        return send(one, lock);
    }
    turns_.granted(&one, now_);
    one.holds = true;
    turns_.let_go();
    send(one, unlock);
}

HandOffs AdvisoryQueue::run_for(double seconds) {
    now_ = {};
    turns_.forget();
    const auto start = Clock::now();
    run_until(loop_, start + in_seconds(seconds), [] { return false; });
    now_.seconds = seconds_since(start);
    return std::exchange(now_, {});
}

}  // namespace holdfast::bench
