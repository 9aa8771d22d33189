#include "floors/own_clean_up.hpp"

#include <holdfast/client.hpp>

#include "bench.hpp"

namespace holdfast::bench {

CleanUp clean_up_own(const Deployment& own) {
    Diagnostics words;
    ClientOptions how;
    how.config_file = own.config_file;
    how.diagnostics = &words;
    const auto client = Client::open(own.open, how);
    if (!client) throw SelfCheck(words.text());
    const auto held = client->list(own.prefix, 10000, &words);
    if (!held) throw SelfCheck("cannot list what is held: " + words.text());
    CleanUp done;
    done.still_held = held->size();
    done.words = std::to_string(held->size()) + " locks held below " + own.prefix;
    return done;
}

}  // namespace holdfast::bench
