#include "single_server.hpp"

#include <fmt/format.h>

#include "answers.hpp"
#include "holdfast/lab/error.hpp"
#include "text_file.hpp"

namespace holdfast::lab {

std::string SingleServer::Impl::log() const {
    return detail::read_text(log_file());
}

const TlsFiles& SingleServer::Impl::tls() const {
    if (!tls_) throw LabError(fmt::format("this {} server was started without TLS", kind_.name));
    return *tls_;
}

Process& SingleServer::Impl::process() {
    if (!process_)
        throw LabError(fmt::format("the {} server could not be started again", kind_.name));
    return *process_;
}

void SingleServer::Impl::start() {
    // The port was free when it was reserved, but only listening on it makes it ours.
    for (int attempt = 1;; ++attempt) {
        try {
            launch();
            return;
        } catch (const LabError&) {
            const bool taken = log().find("Address already in use") != std::string::npos;
            process_.reset();
            if (!taken || attempt == 5 || !move()) throw;
            std::filesystem::remove(log_file());
        }
    }
}

void SingleServer::Impl::launch() {
    ProcessOptions process;
    process.argv = command();
    process.package = kind_.package;
    process.log = log_file();
    process.directory = directory_.path();
    process.environment = {{"LC_ALL", "C.UTF-8"}, {"TZ", "UTC"}};
    process.environment.insert(process.environment.end(), environment_.begin(), environment_.end());
    process.cpus = cpus_;
    process_.emplace(std::move(process));
    wait_ready(cap_);
}

void SingleServer::Impl::wait_ready(std::chrono::nanoseconds cap) {
    detail::wait_for_answer(
        process(), kind_.program, [this] { ask(); }, cap);
}

void SingleServer::Impl::restart(Data what) {
    end(what);
    if (what == Data::fresh) {
        std::filesystem::remove_all(data());
        make_data();
    }
    launch();
    if (what == Data::fresh) set_up();
}

void SingleServer::Impl::end(Data what) {
    if (process_ && process_->alive()) {
        process_->resume();
        ask_to_end(what);
        if (!process_->wait(default_cap))
            throw LabError(fmt::format("{} did not end\n{}", kind_.program, process_->log_tail()));
    }
    process_.reset();
}

bool SingleServer::Impl::move() {
    port_ = free_port();
    return true;
}

void SingleServer::Impl::ask_to_end(Data what) {
    process().signal(what == Data::keep ? kind_.ends : kind_.quits);
}

SingleServer::SingleServer(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
SingleServer::SingleServer(SingleServer&&) noexcept = default;
SingleServer& SingleServer::operator=(SingleServer&&) noexcept = default;
SingleServer::~SingleServer() = default;

std::uint16_t SingleServer::port() const noexcept {
    return impl_->port();
}
const std::string& SingleServer::password() const noexcept {
    return impl_->password();
}
const TlsFiles& SingleServer::tls_files() const {
    return impl_->tls();
}
std::filesystem::path SingleServer::data_directory() const {
    return impl_->data();
}
std::string SingleServer::log() const {
    return impl_->log();
}
Process& SingleServer::process() {
    return impl_->process();
}
bool SingleServer::alive() {
    return impl_->process().alive();
}
void SingleServer::pause() {
    impl_->process().pause();
}
void SingleServer::resume() {
    impl_->process().resume();
}
void SingleServer::kill() {
    impl_->process().kill();
}
void SingleServer::restart(Data data) {
    impl_->restart(data);
}
void SingleServer::wait_ready(std::chrono::nanoseconds cap) {
    impl_->wait_ready(cap);
}

SqlServer::SqlServer(std::unique_ptr<Impl> impl) noexcept : SingleServer(std::move(impl)) {}

std::string SqlServer::url() const {
    return fmt::format("{}://holdfast@127.0.0.1:{}/holdfast",
                       static_cast<const Impl&>(*impl_).scheme(), port());
}
std::string SqlServer::url_with_password(std::uint16_t through) const {
    return fmt::format(
        "{}://holdfast{}@127.0.0.1:{}/holdfast", static_cast<const Impl&>(*impl_).scheme(),
        password().empty() ? std::string() : ":" + password(), through == 0 ? port() : through);
}
SqlRows SqlServer::sql(const std::string& text) const {
    return static_cast<const Impl&>(*impl_).sql(text);
}
std::string SqlServer::value(const std::string& text) const {
    const auto rows = sql(text);
    if (rows.empty() || rows[0].empty()) throw LabError("no row: " + text);
    return rows[0][0];
}

}  // namespace holdfast::lab
