#include "server_group.hpp"

#include <fmt/format.h>

#include <utility>

#include "holdfast/lab/error.hpp"
#include "text_file.hpp"

namespace holdfast::lab {

void ServerGroup::Impl::make_members() {
    members_.clear();
    for (std::size_t i = 0; i < count_; ++i)
        members_.push_back(std::make_unique<Member>());
}

ServerGroup::Impl::Member& ServerGroup::Impl::at(std::size_t i) const {
    if (i >= members_.size()) throw LabError(fmt::format("there is no {} {}", kind_.one, i));
    return *members_[i];
}

Process& ServerGroup::Impl::process(std::size_t i) const {
    auto& m = at(i);
    if (!m.process) throw LabError(fmt::format("that {} could not be started again", kind_.one));
    return *m.process;
}

std::string ServerGroup::Impl::host(std::size_t i) const {
    return hosts_.empty() ? "127.0.0.1" : hosts_.at(i);
}

std::string ServerGroup::Impl::address(std::size_t i) const {
    return fmt::format("{}:{}", host(i), port(i));
}

void ServerGroup::Impl::start() {
    for (int attempt = 1;; ++attempt) {
        for (std::size_t i = 0; i < size(); ++i)
            launch(i);
        try {
            wait_ready(cap_);
            return;
        } catch (const LabError&) {
            bool taken = false;
            for (const auto& m : members_) {
                const auto log = detail::read_text(m->directory / "log");
                taken = taken || log.find("ddress already in use") != std::string::npos;
                m->process.reset();
            }
            if (!taken || attempt == 5) throw;
            make_members();
        }
    }
}

void ServerGroup::Impl::wait_ready(std::chrono::nanoseconds cap) {
    std::optional<std::size_t> ended;
    std::size_t silent = 0;
    const auto ready = [&] {
        for (std::size_t i = 0; i < size(); ++i) {
            auto& m = at(i);
            if (!m.process) continue;
            if (!m.process->alive()) {
                if (m.served) continue;
                ended = i;  // by itself
                return true;
            }
            silent = i;
            if (!serves(i)) return false;
            m.served = true;
        }
        return agree();
    };
    if (reached(ready, cap) && !ended) return;
    auto& failed = process(ended.value_or(silent));
    throw LabError(fmt::format("{} {} {}\n  command: {}\n  log:\n{}", kind_.one,
                               ended.value_or(silent), ended ? "has ended" : "does not serve",
                               failed.command_line(), failed.log_tail()));
}

void ServerGroup::Impl::restart(std::size_t i, Data data) {
    end(i);
    if (data == Data::fresh) std::filesystem::remove_all(at(i).directory / "data");
    launch(i);
}

void ServerGroup::Impl::restart_all(Data data) {
    start_anew(data);
    wait_ready(cap_);
}

void ServerGroup::Impl::start_anew(Data data) {
    for (std::size_t i = 0; i < size(); ++i)
        end(i);
    if (data == Data::fresh) {
        ++generation_;
        for (const auto& m : members_)
            std::filesystem::remove_all(m->directory / "data");
    }
    for (std::size_t i = 0; i < size(); ++i)
        launch(i);
}

void ServerGroup::Impl::end(std::size_t i) {
    auto& m = at(i);
    if (m.process) m.process->kill();
    m.process.reset();
}

void ServerGroup::Impl::launch(std::size_t i) {
    auto& m = at(i);
    m.served = false;
    ProcessOptions process;
    if (!launchers_.empty()) process.argv = launchers_.at(i);
    const auto own = command(i);
    process.argv.insert(process.argv.end(), own.begin(), own.end());
    process.package = kind_.package;
    process.log = m.directory / "log";
    process.directory = m.directory.path();
    process.cpus = cpus_;
    m.process.emplace(std::move(process));
}

ServerGroup::ServerGroup(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
ServerGroup::ServerGroup(ServerGroup&&) noexcept = default;
ServerGroup& ServerGroup::operator=(ServerGroup&&) noexcept = default;
ServerGroup::~ServerGroup() = default;

std::size_t ServerGroup::size() const noexcept {
    return impl_->size();
}
std::string ServerGroup::addresses() const {
    std::string text;
    for (std::size_t i = 0; i < size(); ++i)
        text += (i == 0 ? "" : ",") + impl_->address(i);
    return text;
}
std::string ServerGroup::url() const {
    return fmt::format("{}://{}", impl_->scheme(), addresses());
}
std::string ServerGroup::url(std::size_t server) const {
    return fmt::format("{}://{}", impl_->scheme(), impl_->address(server));
}
std::string ServerGroup::host(std::size_t server) const {
    return impl_->host(server);
}
std::uint16_t ServerGroup::port(std::size_t server) const {
    return impl_->port(server);
}
std::filesystem::path ServerGroup::data_directory(std::size_t server) const {
    return impl_->at(server).directory / "data";
}
Process& ServerGroup::process(std::size_t server) {
    return impl_->process(server);
}
bool ServerGroup::alive(std::size_t server) {
    return impl_->process(server).alive();
}
void ServerGroup::pause(std::size_t server) {
    impl_->process(server).pause();
}
void ServerGroup::resume(std::size_t server) {
    impl_->process(server).resume();
}
void ServerGroup::kill(std::size_t server) {
    impl_->process(server).kill();
}
void ServerGroup::restart(std::size_t server, Data data) {
    impl_->restart(server, data);
}
void ServerGroup::restart_all(Data data) {
    impl_->restart_all(data);
}
std::optional<std::size_t> ServerGroup::leader() const {
    return impl_->leader();
}
std::size_t ServerGroup::kill_leader() {
    std::optional<std::size_t> found;
    if (!reached([&] { return (found = leader()).has_value(); }, default_cap))
        throw LabError(fmt::format("no {} leads", impl_->kind().one));
    kill(*found);
    return *found;
}
void ServerGroup::wait_ready(std::chrono::nanoseconds cap) {
    impl_->wait_ready(cap);
}

}  // namespace holdfast::lab
