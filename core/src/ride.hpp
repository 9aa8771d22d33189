// One exchange of an asynchronous call on a lane in halves: sent by the calling thread, its answer
// taken on the caller's own executor, without a change of threads.
#pragma once
#include <boost/asio/any_completion_executor.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <memory>
#include <mutex>
#include <optional>

#include "engine.hpp"

namespace holdfast {

/// waiting -> (readable) -> taking -> waiting | done; and waiting -> given up, by the engine: at
/// the deadline, at a cancellation, at the client's end. A caller whose executor does not run
/// loses nothing by it: the engine goes on in its stead.
class Ride : public Timed {
public:
    /// Those executors that are known to wait for descriptors.
    static std::optional<asio::any_io_executor> waits_on(const asio::any_completion_executor&);

    Ride(std::shared_ptr<Engine>, Passage);
    ~Ride() override;

    /// Sends, and from then on keeps itself alive until it has ended. False: nothing was sent.
    bool start(boot_clock::time_point deadline);
    /// Engine thread: the deadline.
    void fire(boot_clock::time_point) override { give_up({}); }
    /// Engine thread. An error is what the caller is to be told instead of being served further.
    void give_up(error_code why);

protected:
    const std::shared_ptr<Engine> engine_;

private:
    virtual bool begin(spi::AsyncLane&) = 0;
    virtual bool finish(spi::AsyncLane&) = 0;
    virtual void abandon(spi::AsyncLane&) = 0;
    /// It is over: on the caller's executor, or on the engine thread when it was given up.
    virtual void over() = 0;
    /// After over(), on the engine thread: the caller is not to be served further.
    virtual void stop(error_code why) = 0;
    void wait();
    void readable();
    std::shared_ptr<Ride> self() { return std::static_pointer_cast<Ride>(shared_from_this()); }

    enum class Phase : std::uint8_t { waiting, taking, given_up, done };
    SoleLane::Ptr lane_;
    int fd_ = -1;  // the lane's; a lane that was abandoned keeps it until its return
    asio::posix::stream_descriptor descriptor_;
    boot_clock::time_point deadline_;
    std::mutex mutex_;  // guards what follows, and the lane from verbs of two threads at once
    Phase phase_ = Phase::waiting;
    error_code stopped_;
};

/// The first attempt of a Waiter, or the first try of a Grant's release: what is not done by it
/// goes on from there on the engine.
template <class Item>
class RideOf final : public Ride {
public:
    RideOf(std::shared_ptr<Engine> engine, Passage passage, std::shared_ptr<Item> item)
        : Ride(std::move(engine), std::move(passage)), item_(std::move(item)) {}

private:
    bool begin(spi::AsyncLane& lane) override { return lane.begin(item_->riding()); }
    bool finish(spi::AsyncLane& lane) override { return lane.finish(item_->riding()); }
    void abandon(spi::AsyncLane& lane) override { lane.abandon(item_->riding()); }
    void over() override {
        at_engine_ = !item_->ridden();
        if (at_engine_) engine_->go_on(item_);
    }
    void stop(error_code why) override {
        // A release that was begun is not called off. A waiter has not started before what it
        // posted is run.
        if constexpr (requires { item_->cancel(why); })
            if (at_engine_) engine_->post([item = item_, why] { item->cancel(why); });
    }

    const std::shared_ptr<Item> item_;
    bool at_engine_ = false;
};

}  // namespace holdfast
