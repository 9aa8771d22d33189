#include "sentinel.hpp"

#include <utility>

namespace holdfast::sim {
namespace {

constexpr const char* port = "6379";
constexpr const char* channel = "+switch-master";

}  // namespace

Sentinel::Sentinel(Kernel& k, std::string name, std::string primary, std::string host)
    : Redis(k, std::move(name)), primary_(std::move(primary)), host_(std::move(host)) {
    // A real one executes the commands of one write without anything in between.
    fastest = slowest = 0;
}

void Sentinel::learn(const std::string& host, std::uint64_t of_configuration) {
    const std::string former = std::exchange(host_, host);
    epoch_ = of_configuration;
    publish(channel, primary_ + " " + former + " " + port + " " + host + " " + port);
}

std::string Sentinel::answer(Session& s, const Words& words) {
    const std::string name = command_of(words);
    if (name == "UNSUBSCRIBE") {
        s.channels.erase(words.at(1));
        return "*3\r\n" + bulk("unsubscribe") + bulk(words[1]) + ":0\r\n";
    }
    if (name == "CLIENT") return "+OK\r\n";  // SETNAME
    if (name != "SENTINEL") return Redis::answer(s, words);
    if (words.at(1) == "GET-MASTER-ADDR-BY-NAME") return "*2\r\n" + bulk(host_) + bulk(port);
    return "*6\r\n" + bulk("name") + bulk(primary_) + bulk("config-epoch") +
           bulk(std::to_string(epoch_)) + bulk("quorum") + bulk("2");
}

}  // namespace holdfast::sim
