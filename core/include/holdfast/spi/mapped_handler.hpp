// For decorators: a completion handler that processes the result first.
#pragma once
#include <boost/asio/associator.hpp>
#include <type_traits>
#include <utility>

namespace holdfast::spi {

/// Calls f(handler, results...). Has the handler's executor, cancellation slot and allocator.
template <class Handler, class F>
struct MappedHandler {
    Handler handler;
    F f;
    template <class... Results>
    void operator()(Results&&... results) {
        std::move(f)(std::move(handler), std::forward<Results>(results)...);
    }
};

template <class Handler, class F>
MappedHandler<std::decay_t<Handler>, std::decay_t<F>> map_handler(Handler&& handler, F&& f) {
    return {std::forward<Handler>(handler), std::forward<F>(f)};
}

}  // namespace holdfast::spi

template <template <class, class> class Associator, class Handler, class F, class Default>
struct boost::asio::associator<Associator, holdfast::spi::MappedHandler<Handler, F>, Default>
    : Associator<Handler, Default> {
    using Mapped = holdfast::spi::MappedHandler<Handler, F>;
    static auto get(const Mapped& h) noexcept {
        return Associator<Handler, Default>::get(h.handler);
    }
    static auto get(const Mapped& h, const Default& d) noexcept {
        return Associator<Handler, Default>::get(h.handler, d);
    }
};
