// A Lock whose acquisitions wait until they are cancelled, and whose answer is there before the
// cancellation returns: the earliest that a thread of an engine could bring it.
#pragma once
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/system_executor.hpp>
#include <holdfast/holdfast.hpp>
#include <memory>
#include <string>
#include <thread>

namespace test_support {

class EndsInside final : public holdfast::Lock {
public:
    explicit EndsInside(std::string name) : name_(std::move(name)) {}
    std::string_view name() const noexcept override { return name_; }
    const holdfast::Capabilities& capabilities() const noexcept override { return has_; }
    holdfast::Kind kind() const noexcept override { return holdfast::Kind::mutex; }
    std::string place() const override { return name_; }
    std::unique_ptr<holdfast::Lock> clone() const override {
        return std::make_unique<EndsInside>(name_);
    }

protected:
    void do_async_acquire(const holdfast::AcquireOptions&, Handler handler) const override {
        auto slot = boost::asio::get_associated_cancellation_slot(handler);
        const auto waits = std::make_shared<Handler>(std::move(handler));
        slot.assign([waits](boost::asio::cancellation_type) {
            if (!*waits) return;
            std::thread([waits] {
                const auto where = boost::asio::get_associated_executor(
                    *waits, boost::asio::any_completion_executor(boost::asio::system_executor()));
                boost::asio::dispatch(where, [handler = std::move(*waits)]() mutable {
                    std::move(handler)(make_error_code(holdfast::errc::cancelled),
                                       holdfast::Lease());
                });
            }).join();
        });
    }

private:
    const std::string name_;
    const holdfast::Capabilities has_{};
};

}  // namespace test_support
