#include "holdfast/lab/ha_proxy.hpp"

#include "holdfast/lab/error.hpp"
#include "stream_socket.hpp"
#include "text_file.hpp"

namespace holdfast::lab {
namespace {

Process launch(const TempDir& directory, const std::string& config) {
    const auto file = directory / "haproxy.cfg";
    detail::write_text(file, config);
    ProcessOptions options;
    options.argv = {"haproxy", "-db", "-f", file.string()};
    options.package = "haproxy";
    options.log = directory / "log";
    return Process(std::move(options));
}

}  // namespace

HaProxy::HaProxy(const std::function<std::string(std::uint16_t)>& config)
    : process_(launch(directory_, config(port_.number()))) {
    const auto listens = [this] {
        try {
            const StreamSocket socket("127.0.0.1", port_.number(), std::chrono::seconds(1));
            return true;
        } catch (const LabError&) {
            return !process_.alive();
        }
    };
    if (!reached(listens, default_cap) || !process_.alive())
        throw LabError("haproxy does not listen\n" + process_.log_tail());
}

}  // namespace holdfast::lab
