// What the object file that registers a backend has to say beside its Descriptor.
#pragma once
#include <memory>

#include "holdfast/spi/registry.hpp"

namespace holdfast::spi {

/// For Descriptor::make: makes a backend of class B.
template <class B>
std::unique_ptr<Backend> make_backend(const Settings& settings, Context context) {
    return std::make_unique<B>(settings, context);
}

}  // namespace holdfast::spi

/// Outside of any namespace: registers what describe() returns, and defines the symbol by which the
/// build forces this object file into every program that links the backend.
#define HOLDFAST_REGISTER_BACKEND(name, describe)                               \
    extern "C" [[gnu::visibility("default")]] void holdfast_backend_##name();   \
    extern "C" void holdfast_backend_##name() {}                                \
    namespace {                                                                 \
    const ::holdfast::spi::Registration holdfast_registration_##name{describe}; \
    }
