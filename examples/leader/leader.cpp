// One of several processes leads, and all know which.
//   leader URL VALUE   campaigns, and leads while its term lasts; VALUE is what the others see
//   leader URL         prints who leads, at each change
#include <pthread.h>
#include <signal.h>

#include <chrono>
#include <holdfast/holdfast.hpp>
#include <iostream>
#include <string_view>
#include <thread>

using namespace std::chrono_literals;

namespace {

// INT and TERM request a stop. Blocked before Holdfast starts its threads, so that only this one
// gets them.
std::stop_token stopped_by_signals() {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    std::stop_source stop;
    std::thread([signals, stop]() mutable {
        int number = 0;
        sigwait(&signals, &number);
        stop.request_stop();
    }).detach();
    return stop.get_token();
}

// Stands for what a leader does. Each step is short, so that it ends in time when the term does.
void step() {
    std::this_thread::sleep_for(50ms);
}

int watch(const holdfast::Election& election, const std::stop_token& stop) {
    std::optional<holdfast::Leader> leader;
    while (!stop.stop_requested()) {
        auto next = election.observe(leader, holdfast::forever, stop);
        if (!next) return next.error() == holdfast::errc::cancelled ? 0 : 69;
        leader = *next;
        std::cout << (leader ? leader->value : "nobody") << " leads" << std::endl;
    }
    return 0;
}

int campaign(holdfast::Election& election, std::string_view value, const std::stop_token& stop) {
    while (!stop.stop_requested()) {
        auto term = election.campaign(value, {}, stop);
        if (!term && term.error() == holdfast::errc::cancelled) break;
        if (!term) {
            std::cerr << term.error().message() << '\n';
            return 69;
        }
        std::cout << value << " leads, token " << term->fencing_token().value << std::endl;
        while (term->valid() && !stop.stop_requested())
            step();
        if (!term->valid())
            std::cout << value << " leads no more: " << term->lost_reason().message() << std::endl;
        term->release();  // resigns: the next one leads at once
    }
    std::cout << value << " resigns" << std::endl;
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2 && argc != 3) {
        std::cerr << "usage: leader URL [VALUE]\n";
        return 64;
    }
    const std::stop_token stop = stopped_by_signals();
    auto client = holdfast::Client::open(argv[1]).value();
    auto election = client.make_election("scheduler").value();
    return argc == 3 ? campaign(election, argv[2], stop) : watch(election, stop);
}
