// The blocking form of a Lock that only has the asynchronous one, such as a decorator.
#include "holdfast/lock.hpp"

#include <boost/asio/any_completion_executor.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

namespace holdfast {

result<Lease> Lock::do_acquire(const AcquireOptions& options, std::stop_token stop) const {
    // The caller runs a loop of its own, so an emission and the completion cannot meet.
    asio::io_context loop;
    asio::cancellation_signal cancel;
    // A decorator may drop the handler: the lock inside cannot complete it in a forked child.
    error_code ec = make_error_code(errc::cancelled);
    Lease lease;
    auto done = [&](error_code e, Lease l) {
        ec = e;
        lease = std::move(l);
    };
    do_async_acquire(options,
                     asio::bind_executor(loop, asio::bind_cancellation_slot(cancel.slot(), done)));
    const std::stop_callback on_stop(
        stop, [&] { asio::post(loop, [&] { cancel.emit(asio::cancellation_type::terminal); }); });
    loop.run();
    if (ec) return ec;
    return lease;
}

}  // namespace holdfast
