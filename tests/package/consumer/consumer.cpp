// What a user's program does with one linked backend, and what it is told about one that is not.
#include <holdfast/holdfast.hpp>
#include <iostream>
#include <mutex>
#include <string>
#include <string_view>

namespace {

void print(const holdfast::Client& client) {
    std::cout << client.url() << " is safety class "
              << holdfast::to_string(client.capabilities().safety) << '\n';
    for (unsigned i = 0; i < static_cast<unsigned>(holdfast::Capability::count_); ++i) {
        const auto capability = static_cast<holdfast::Capability>(i);
        std::cout << "  " << holdfast::to_string(capability) << ": "
                  << (client.capabilities().has(capability) ? "yes" : "no") << '\n';
    }
}

/// Several locks at once, and one that its owner takes again: partly templates, compiled here.
bool use_what_stands_above(const holdfast::Client& client) {
    const auto a = client.make_lock("a").value(), b = client.make_lock("b").value();
    auto both = holdfast::acquire_all({*a, *b});
    holdfast::Reentrant<std::string> again(client.make_lock("again"));
    const auto outer = again.acquire("owner"), inner = again.try_acquire("owner");
    holdfast::recursive_mutex mutex(client.make_lock("mutex"));
    const std::lock_guard once(mutex), twice(mutex);
    return both && both->release() == holdfast::ReleaseResult::released && outer && inner;
}

}  // namespace

// consumer URL [acquire|unreachable] URL-THAT-IS-NOT-LINKED
int main(int argc, char** argv) {
    if (argc != 4) return 64;
    holdfast::Diagnostics words;
    auto client = holdfast::Client::open(argv[1], {.diagnostics = &words});
    if (!client) {
        std::cout << "open failed: " << words.text() << '\n';
        return 1;
    }
    print(*client);

    auto lock = client->make_lock("consumer");
    if (!lock) return 2;
    auto lease = (*lock)->try_acquire();
    if (std::string_view(argv[2]) == "acquire") {
        if (!lease || !lease->fencing_token()) return 3;
        std::cout << "token " << lease->fencing_token().value << '\n';
        if (lease->release() != holdfast::ReleaseResult::released) return 4;
        if (!use_what_stands_above(*client)) return 7;
    } else if (lease || (lease.error() != holdfast::errc::unavailable &&
                         lease.error() != holdfast::errc::no_quorum)) {
        return 5;
    }

    words = {};
    auto other = holdfast::Client::open(argv[3], {.diagnostics = &words});
    if (other || other.error() != holdfast::errc::not_supported) return 6;
    std::cout << words.text() << '\n';
    return 0;
}
