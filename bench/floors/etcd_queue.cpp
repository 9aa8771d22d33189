#include "floors/etcd_queue.hpp"

#include <fmt/format.h>

#include <utility>

#include "bench.hpp"
#include "etcd.pb.h"
#include "floors/etcd_answer.hpp"

namespace holdfast::bench {

namespace {

namespace rpc = etcd::rpc;

constexpr std::int64_t lease_seconds = 600;  // longer than any run: nobody sends keep-alives
const std::string queue = "/bench-queue/", after_queue = "/bench-queue0";

/// The newest keys of the queue, in the order in which they were made; `before`: made before this
/// revision.
rpc::RangeRequest newest(std::int64_t limit, std::int64_t before) {
    rpc::RangeRequest out;
    out.set_key(queue);
    out.set_range_end(after_queue);
    out.set_limit(limit);
    out.set_keys_only(true);
    // sort_order = 5: DESCEND, sort_target = 6: CREATE, max_create_revision = 13. Holdfast's
    // messages lack these fields, and protobuf keeps what it does not know.
    std::string bytes = out.SerializeAsString() + "\x28\x02\x30\x02";
    if (before > 0) {
        bytes += '\x68';
        for (auto n = static_cast<std::uint64_t>(before - 1);; n >>= 7) {
            bytes += static_cast<char>((n & 0x7f) | (n > 0x7f ? 0x80 : 0));
            if (n <= 0x7f) break;
        }
    }
    return read<rpc::RangeRequest>(bytes);
}

}  // namespace

EtcdQueue::EtcdQueue(std::uint16_t port, std::size_t waiters) : connection_("127.0.0.1", port) {
    rpc::LeaseGrantRequest lease;
    lease.set_ttl(lease_seconds);
    const auto granted =
        connection_.ask("/etcdserverpb.Lease/LeaseGrant", lease.SerializeAsString());
    lease_ = read<rpc::LeaseGrantResponse>(granted).id();
    events_ = connection_.start({"/etcdserverpb.Watch/Watch", "", true});
    for (std::size_t i = 0; i <= waiters; ++i) {
        One& one = all_.emplace_back();
        // As long as a key of Holdfast's.
        one.key = fmt::format("{}{:0>32}", queue, i);
        enter(one);
    }
}

void EtcdQueue::ask(One& one, One::Step step, const std::string& path, const std::string& message) {
    one.step = step;
    asked_[connection_.start({path, message})] = &one;
    ++now_.requests;
}

void EtcdQueue::enter(One& one) {
    rpc::TxnRequest both;
    rpc::PutRequest& put = *both.add_success()->mutable_request_put();
    put.set_key(one.key);
    put.set_lease(lease_);
    *both.add_success()->mutable_request_range() = newest(2, 0);
    ask(one, One::Step::entering, "/etcdserverpb.KV/Txn", both.SerializeAsString());
}

void EtcdQueue::look(One& one) {
    ask(one, One::Step::looking, "/etcdserverpb.KV/Range", newest(1, one.made).SerializeAsString());
}

void EtcdQueue::watch(One& one, const std::string& before, std::int64_t since) {
    rpc::WatchRequest request;
    rpc::WatchCreateRequest& create = *request.mutable_create_request();
    create.set_key(before);
    create.set_start_revision(since + 1);
    unnumbered_.push_back(&one);
    connection_.send(events_, request.SerializeAsString());
    ++now_.requests;
}

void EtcdQueue::granted(One& one) {
    turns_.granted(&one, now_);
    turns_.let_go();
    rpc::TxnRequest gone;
    gone.add_success()->mutable_request_delete_range()->set_key(one.key);
    ask(one, One::Step::leaving, "/etcdserverpb.KV/Txn", gone.SerializeAsString());
}

void EtcdQueue::answered(lab::GrpcConnection::Call call) {
    const auto found = asked_.find(call);
    if (found == asked_.end()) throw SelfCheck("etcd queue: its watches ended");
    One& one = *found->second;
    asked_.erase(found);
    const auto answer = connection_.finish(call);
    if (one.step == One::Step::looking) {
        const auto line = read<rpc::RangeResponse>(answer);
        if (line.kvs().empty())
            granted(one);
        else
            watch(one, line.kvs(0).key(), line.header().revision());
        return;
    }
    const auto done = read<rpc::TxnResponse>(answer);
    if (one.step == One::Step::leaving) {
        if (done.responses(0).response_delete_range().deleted() != 1)
            throw SelfCheck("etcd queue: a key was gone");
        enter(one);
        return;
    }
    one.made = done.header().revision();
    const auto& line = done.responses(1).response_range().kvs();
    if (line.empty() || line[0].key() != one.key)
        throw SelfCheck("etcd queue: the newest key is another one");
    if (line.size() == 1)
        granted(one);
    else
        watch(one, line[1].key(), one.made);
}

void EtcdQueue::heard(const rpc::WatchResponse& said) {
    if (said.canceled() && said.compact_revision() != 0)
        throw SelfCheck("etcd queue: a watch was cancelled");
    if (said.created()) {
        if (unnumbered_.empty()) throw SelfCheck("etcd queue: a watch that nobody asked for");
        watches_[said.watch_id()] = unnumbered_.front();
        unnumbered_.pop_front();
    }
    for (const rpc::Event& event : said.events()) {
        const auto found = watches_.find(said.watch_id());
        if (event.type() != rpc::Event::DELETE || found == watches_.end()) continue;
        look(*found->second);
        watches_.erase(found);
        rpc::WatchRequest over;
        over.mutable_cancel_request()->set_watch_id(said.watch_id());
        connection_.send(events_, over.SerializeAsString());
        ++now_.requests;
    }
}

HandOffs EtcdQueue::run_for(double seconds) {
    now_ = {};
    turns_.forget();
    const auto start = Clock::now();
    while (seconds_since(start) < seconds) {
        if (const auto call = connection_.any_beside(events_)) {
            answered(*call);
            continue;
        }
        while (const auto message = connection_.next(events_, std::chrono::nanoseconds::zero()))
            heard(read<rpc::WatchResponse>(*message));
    }
    now_.seconds = seconds_since(start);
    return std::exchange(now_, {});
}

}  // namespace holdfast::bench
