// One holder or waiter of ours that a test leads step by step: STEPS URL NAME. Reads a command a
// line and answers with a line each: acquire KIND MODE LIMIT WAIT-MS, downgrade, release, inspect.
// An error is answered with its name, as far as a test looks for it, and its words.
#include <algorithm>
#include <holdfast/holdfast.hpp>
#include <iostream>
#include <sstream>

namespace {

namespace hf = holdfast;

std::string failed(const hf::error_code& ec, const hf::Diagnostics& words) {
    std::string text = words.text();
    std::replace(text.begin(), text.end(), '\n', ' ');
    const char* const name = ec == hf::errc::contended       ? "contended"
                             : ec == hf::errc::timed_out     ? "timed_out"
                             : ec == hf::errc::kind_mismatch ? "kind_mismatch"
                                                             : "error";
    return name + (": " + text);
}

std::string acquire(const hf::Client& client, const std::string& name, std::istream& in,
                    hf::Lease& lease) {
    std::string kind, mode;
    hf::LockOptions options;
    long long wait = 0;
    in >> kind >> mode >> options.limit >> wait;
    if (kind == "shared_mutex") options.kind = hf::Kind::shared_mutex;
    if (kind == "semaphore") options.kind = hf::Kind::semaphore;
    hf::Diagnostics words;
    const auto lock = client.make_lock(name, options, &words);
    if (!lock) return failed(lock.error(), words);
    auto got =
        (*lock)->acquire({.wait = hf::milliseconds(wait),
                          .diagnostics = &words,
                          .mode = mode == "shared" ? hf::Mode::shared : hf::Mode::exclusive});
    if (!got) return failed(got.error(), words);
    lease = std::move(*got);
    return "granted";
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) return 64;
    hf::Diagnostics words;
    const auto client = hf::Client::open(argv[1], {.diagnostics = &words});
    if (!client) {
        std::cerr << words.text() << '\n';
        return 1;
    }
    const std::string name = argv[2];
    hf::Lease lease;
    for (std::string line; std::getline(std::cin, line);) {
        std::istringstream in(line);
        std::string verb;
        in >> verb;
        std::string answer = "?";
        if (verb == "acquire") answer = acquire(*client, name, in, lease);
        if (verb == "release")
            answer = lease.release() == hf::ReleaseResult::released ? "released" : "not held";
        if (verb == "downgrade") {
            const auto done = lease.downgrade();
            answer = done ? "downgraded" : failed(done.error(), {});
        }
        if (verb == "inspect") {
            hf::Diagnostics why;
            const auto seen = client->inspect(name, &why);
            answer = seen ? "holders " + std::to_string(seen->holders.size())
                          : failed(seen.error(), why);
        }
        std::cout << answer << std::endl;
    }
}
