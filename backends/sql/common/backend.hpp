// The frame of a backend on a table: verbs and operators' calls become jobs of a worker, whose
// answers become outcomes. What a grant needs beside the table (a line, a watch) is up to the
// backend.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "worker.hpp"

namespace holdfast::sql {

/// `Questions` implements operators' calls on a connection: static survey, tell, note,
/// list and examine, which block until the deadline at the latest.
template <class Step, class Connection, class Questions>
class Backend : public spi::Backend {
public:
    const Capabilities& capabilities() const noexcept final { return capabilities_; }
    std::size_t max_batch(spi::Verb) const noexcept final { return most_steps; }
    spi::awaitable<void> renew(std::span<spi::Held* const> items) final {
        return keep(Step::Kind::renew, items);
    }
    spi::awaitable<void> release(std::span<spi::Held* const> items) final {
        return keep(Step::Kind::release, items);
    }

    spi::awaitable<spi::Answer<spi::Survey>> survey(std::string_view name,
                                                    boot_clock::time_point deadline) final {
        auto ask = [name = std::string(name), deadline](Connection& c) {
            return Questions::survey(c, name, deadline);
        };
        return question<spi::Survey>(std::move(ask), deadline);
    }
    spi::awaitable<spi::Answer<spi::Survey>> tell(std::string_view name, const HolderFilter& which,
                                                  spi::Tell what,
                                                  boot_clock::time_point deadline) final {
        auto ask = [name = std::string(name), which, what, deadline](Connection& c) {
            return Questions::tell(c, name, which, what, deadline);
        };
        return question<spi::Survey>(std::move(ask), deadline);
    }
    spi::awaitable<spi::Answer<std::string>> note(std::string_view name,
                                                  std::optional<std::string> text,
                                                  boot_clock::time_point deadline) final {
        auto ask = [name = std::string(name), text = std::move(text), deadline](Connection& c) {
            return Questions::note(c, name, text, deadline);
        };
        return question<std::string>(std::move(ask), deadline);
    }
    spi::awaitable<spi::Answer<std::vector<std::string>>> list(
        std::string_view prefix, std::size_t limit, boot_clock::time_point deadline) final {
        auto ask = [prefix = std::string(prefix), limit, deadline](Connection& c) {
            return Questions::list(c, prefix, limit, deadline);
        };
        return question<std::vector<std::string>>(std::move(ask), deadline);
    }
    spi::awaitable<spi::Answer<Examination>> examine(boot_clock::time_point deadline) final {
        auto ask = [deadline](Connection& c) { return Questions::examine(c, deadline); };
        return question<Examination>(std::move(ask), deadline);
    }

protected:
    using Work = sql::Job<Step, Connection>;
    using Thread = sql::Worker<Step, Connection>;

    Backend(const Capabilities& capabilities, const spi::Settings& settings,
            const spi::Context& context)
        : capabilities_(capabilities), context_(context), prefix_(settings.text("namespace")) {}

    /// Why a job was not answered.
    virtual error_code gone() const noexcept = 0;
    /// Called when a release or a renewal was answered.
    virtual void heard(const Step&, spi::Held&) {}

    std::shared_ptr<Work> job() const { return std::make_shared<Work>(context_.engine); }
    template <class Item>
    std::shared_ptr<Work> job(typename Step::Kind kind, std::span<Item* const> items) const {
        auto made = job();
        made->steps.reserve(items.size());
        for (const Item* i : items)
            made->add(Step(kind, prefix_, *i));
        return made;
    }

    const Capabilities capabilities_;
    const spi::Context context_;
    const std::string prefix_;  ///< namespace, before every name
    /// The workers for renewals and releases and for operators' calls; made by the constructor.
    std::shared_ptr<Thread> keeping_, asking_;

private:
    spi::awaitable<void> keep(typename Step::Kind, std::span<spi::Held* const>);
    template <class T, class Ask>
    spi::awaitable<spi::Answer<T>> question(Ask ask, boot_clock::time_point deadline);
};

template <class Step, class Connection, class Questions>
spi::awaitable<void> Backend<Step, Connection, Questions>::keep(typename Step::Kind kind,
                                                                std::span<spi::Held* const> items) {
    auto work = job(kind, items);
    auto run = keeping_->run(work);
    const bool answered = co_await std::move(run);
    Step silent;
    silent.kind = kind;
    silent.error = gone();
    for (std::size_t i = 0; i < items.size(); ++i) {
        // The thread may still write those that it has not answered.
        Step& s = answered ? work->steps[i] : silent;
        s.tell(*items[i]);
        if (answered) heard(s, *items[i]);
    }
}

template <class Step, class Connection, class Questions>
template <class T, class Ask>
spi::awaitable<spi::Answer<T>> Backend<Step, Connection, Questions>::question(
    Ask ask, boot_clock::time_point deadline) {
    // The caller may give up while the thread still writes. A closing client asks no server.
    auto answer = std::make_shared<spi::Answer<T>>(spi::Failure(errc::closed));
    auto work = job();
    work->deadline = deadline;
    work->ask = [answer, ask = std::move(ask)](Connection& c) {
        try {
            *answer = ask(c);
        } catch (const std::exception& e) {
            c.close();
            *answer = spi::Failure(errc::unavailable, e.what());
        }
    };
    auto run = asking_->run(work);
    const bool answered = co_await std::move(run);
    if (!answered) co_return gone();
    co_return std::move(*answer);
}

}  // namespace holdfast::sql
