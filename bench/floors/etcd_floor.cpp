#include "floors/etcd_floor.hpp"

#include <algorithm>
#include <holdfast/lab/error.hpp>
#include <holdfast/spi/owner.hpp>
#include <random>

#include "bench.hpp"
#include "etcd.pb.h"
#include "floors/etcd_answer.hpp"

namespace holdfast::bench {

namespace {

namespace rpc = etcd::rpc;

constexpr std::size_t names_of_a_request = 32, random_part = 22;
constexpr milliseconds young_for{500};
constexpr std::int64_t lease_seconds = 10;
const std::string root = "/holdfast/";

/// The end of the range of all keys that begin so.
std::string after(std::string prefix) {
    prefix.back() = static_cast<char>(prefix.back() + 1);
    return prefix;
}

std::string line_of(std::size_t name) {
    return root + EtcdFloor::lock_name(name) + "/";
}

rpc::Compare& if_created(rpc::TxnRequest& t, const std::string& key, std::int64_t revision) {
    rpc::Compare& out = *t.add_compare();
    out.set_key(key);
    out.set_target(rpc::Compare::CREATE);
    out.set_create_revision(revision);
    return out;
}

/// As the backend's README has it.
void take(const std::string& line, const std::string& owner, std::int64_t lease,
          rpc::TxnRequest& t) {
    const std::string mine = line + owner, alone = line.substr(0, line.size() - 1);
    const auto if_free = [&](rpc::TxnRequest& one) {
        if_created(one, root + "%gone/" + owner, 0);
        if_created(one, alone, 0);
        rpc::PutRequest& put = *one.add_success()->mutable_request_put();
        put.set_key(mine);
        put.set_value("hf1 " + owner);
        put.set_lease(lease);
    };
    if_free(t);
    if_created(t, line, 0).set_range_end(after(line));
    rpc::TxnRequest& stands = *t.add_failure()->mutable_request_txn();
    if_free(stands);
    if_created(stands, mine, 0);
    stands.add_failure()->mutable_request_range()->set_key(mine);
    stands.add_failure()->mutable_request_range()->set_key(alone);
    rpc::RangeRequest& all = *t.add_failure()->mutable_request_range();
    all.set_key(line);
    all.set_range_end(after(line));
}

void release(const std::string& mine, std::int64_t revision, rpc::TxnRequest& t) {
    if_created(t, mine, revision);
    rpc::DeleteRangeRequest& gone = *t.add_success()->mutable_request_delete_range();
    gone.set_key(mine);
    gone.set_prev_kv(true);
}

std::size_t deleted_in(const rpc::TxnResponse& all) {
    std::size_t out = 0;
    for (const rpc::ResponseOp& one : all.responses())
        out += one.has_response_txn()
                   ? deleted_in(one.response_txn())
                   : static_cast<std::size_t>(one.response_delete_range().deleted());
    return out;
}

bool succeeded(const rpc::TxnResponse& all) {
    return all.succeeded() && std::all_of(all.responses().begin(), all.responses().end(),
                                          [](const rpc::ResponseOp& one) {
                                              return !one.has_response_txn() ||
                                                     succeeded(one.response_txn());
                                          });
}

}  // namespace

/// Some names, which go through their steps together.
struct EtcdFloor::Share {
    Share(std::size_t from, std::size_t count) : first(from), owners(count) {}
    /// Alone a transaction as it is; several as transactions inside of one.
    rpc::TxnRequest& part(rpc::TxnRequest& whole) const {
        return owners.size() == 1 ? whole : *whole.add_success()->mutable_request_txn();
    }
    enum class Step : std::uint8_t { idle, leasing, leased, taking, taken, freeing };
    std::size_t first;
    std::vector<std::string> owners;
    std::int64_t revision = 0;  ///< at which their keys were made
    Step step = Step::idle;
    lab::GrpcConnection::Call call = 0;  ///< under way
};

std::string EtcdFloor::lock_name(std::size_t i) {
    return "bench-floor-" + std::to_string(i);
}

EtcdFloor::EtcdFloor(std::uint16_t port, std::size_t names)
    : connection_("127.0.0.1", port),
      owner_suffix_(spi::make_owner({}).substr(random_part)),
      counter_(std::random_device{}()) {
    for (std::size_t i = 0; i < names; i += names_of_a_request)
        shares_.push_back(std::make_unique<Share>(i, std::min(names_of_a_request, names - i)));
    for (const auto& share : shares_)
        while (share->step != Share::Step::taken) {
            go_on(*share);
            answered(*share);
        }
    prove("taken", names);
    for (const auto& share : shares_) {
        go_on(*share);
        answered(*share);
    }
    prove("freed", 0);
}

EtcdFloor::~EtcdFloor() = default;

const std::string& EtcdFloor::owner() const {
    return shares_.front()->owners.front();
}

/// As long as one of Holdfast's, and different in each cycle.
std::string EtcdFloor::next_owner() {
    std::string random(random_part, 'A');
    auto n = ++counter_;
    for (auto digit = random.rbegin(); n > 0; n /= 10)
        *digit++ = static_cast<char>('0' + n % 10);
    return random + owner_suffix_;
}

bool EtcdFloor::young() const {
    return lease_ != 0 && Clock::now() - leased_ < young_for;
}

void EtcdFloor::ask_for_lease(Share& share) {
    leased_ = Clock::now();  // the others go on with the one before meanwhile
    rpc::LeaseGrantRequest request;
    request.set_ttl(lease_seconds);
    share.call = connection_.start({"/etcdserverpb.Lease/LeaseGrant", request.SerializeAsString()});
    share.step = Share::Step::leasing;
}

void EtcdFloor::ask_to_take(Share& share) {
    rpc::TxnRequest all;
    for (std::size_t i = 0; i < share.owners.size(); ++i) {
        share.owners[i] = next_owner();
        take(line_of(share.first + i), share.owners[i], lease_, share.part(all));
    }
    share.call = connection_.start({"/etcdserverpb.KV/Txn", all.SerializeAsString()});
    share.step = Share::Step::taking;
}

void EtcdFloor::ask_to_free(Share& share) {
    rpc::TxnRequest all;
    for (std::size_t i = 0; i < share.owners.size(); ++i)
        release(line_of(share.first + i) + share.owners[i], share.revision, share.part(all));
    share.call = connection_.start({"/etcdserverpb.KV/Txn", all.SerializeAsString()});
    share.step = Share::Step::freeing;
}

/// Sends what comes next.
void EtcdFloor::go_on(Share& share) {
    if (share.step == Share::Step::taken)
        ask_to_free(share);
    else if (share.step == Share::Step::leased || young())
        ask_to_take(share);
    else
        ask_for_lease(share);
}

/// Waits for the answer; how many cycles have ended with it.
std::size_t EtcdFloor::answered(Share& share) {
    const lab::GrpcAnswer answer = connection_.finish(share.call);
    if (share.step == Share::Step::leasing) {
        lease_ = read<rpc::LeaseGrantResponse>(answer).id();
        share.step = Share::Step::leased;
        return 0;
    }
    const auto all = read<rpc::TxnResponse>(answer);
    if (!succeeded(all)) throw SelfCheck("bare gRPC: a lock was not as it was left");
    if (share.step == Share::Step::taking) {
        share.revision = all.header().revision();
        share.step = Share::Step::taken;
        return 0;
    }
    if (deleted_in(all) != share.owners.size()) throw SelfCheck("bare gRPC: a key was not deleted");
    share.step = Share::Step::idle;
    return share.owners.size();
}

/// Whether so many names have a key.
void EtcdFloor::prove(const char* step, std::size_t keys) {
    rpc::RangeRequest request;
    request.set_key(root + "bench-floor-");
    request.set_range_end(after(request.key()));
    request.set_count_only(true);
    const auto there = read<rpc::RangeResponse>(
        connection_.ask("/etcdserverpb.KV/Range", request.SerializeAsString()));
    if (static_cast<std::size_t>(there.count()) != keys)
        throw SelfCheck("bare gRPC: " + std::to_string(keys) + " names should have a key " + step +
                        ", and " + std::to_string(there.count()) + " have");
}

void EtcdFloor::cycle() {
    Share& share = *shares_.front();
    do {
        go_on(share);
        answered(share);
    } while (share.step != Share::Step::idle);
}

std::size_t EtcdFloor::run_for(double seconds) {
    const auto until = Clock::now() + in_seconds(seconds);
    if (!young()) {  // it may even have ended: all wait for a new one
        ask_for_lease(*shares_.front());
        answered(*shares_.front());
    }
    for (const auto& share : shares_)
        go_on(*share);
    std::size_t done = 0;
    for (std::size_t under_way = shares_.size(); under_way > 0;) {
        const auto call = connection_.any();
        Share& share = **std::find_if(shares_.begin(), shares_.end(),
                                      [call](const auto& s) { return s->call == call; });
        done += answered(share);
        if (share.step != Share::Step::idle || Clock::now() < until)
            go_on(share);
        else
            --under_way;
    }
    return done;
}

}  // namespace holdfast::bench
