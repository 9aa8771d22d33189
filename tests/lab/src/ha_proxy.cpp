#include "holdfast/lab/ha_proxy.hpp"

#include "answers.hpp"
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
    detail::wait_for_answer(process_, "haproxy", [this] {
        const StreamSocket socket("127.0.0.1", port_.number(), std::chrono::seconds(1));
    });
}

}  // namespace holdfast::lab
