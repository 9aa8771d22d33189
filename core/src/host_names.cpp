#include "holdfast/spi/host_names.hpp"

#include <netdb.h>

#include <algorithm>
#include <boost/asio/error.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <system_error>

#include "holdfast/spi/signal_masked_thread.hpp"

namespace holdfast::spi {
namespace asio = boost::asio;
namespace {

error_code code_of(int answer, int number) {
    switch (answer) {
        case 0:
            return {};
        case EAI_NONAME:
        case EAI_NODATA:
            return asio::error::host_not_found;
        case EAI_AGAIN:
            return asio::error::host_not_found_try_again;
        case EAI_MEMORY:
            return asio::error::no_memory;
        case EAI_SYSTEM:
            return {number, boost::system::system_category()};
        default:
            return asio::error::no_recovery;
    }
}

result<HostNames::Addresses> ask(const std::string& host) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* all = nullptr;
    const int answer = ::getaddrinfo(host.c_str(), nullptr, &hints, &all);
    const error_code ec = code_of(answer, errno);
    if (ec) return ec;
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> freed(all, &::freeaddrinfo);
    HostNames::Addresses found;
    for (const addrinfo* a = all; a != nullptr; a = a->ai_next) {
        asio::ip::tcp::endpoint e;
        if (a->ai_addrlen > e.capacity()) continue;
        std::memcpy(e.data(), a->ai_addr, a->ai_addrlen);
        if (std::find(found.begin(), found.end(), e.address()) == found.end())
            found.push_back(e.address());
    }
    if (found.empty()) return error_code(asio::error::host_not_found);
    return found;
}

/// The waiting coroutine, for a look-up's thread: only while it exists.
struct Ear {
    std::mutex mutex;
    asio::any_io_executor executor;
    asio::steady_timer* timer = nullptr;  ///< null once the coroutine has gone

    static void tell(const std::shared_ptr<Ear>& ear) {
        const std::lock_guard hold(ear->mutex);
        // While it waits, what it waits on is alive, and so is the executor's context.
        if (ear->timer == nullptr) return;
        asio::post(ear->executor, [ear] {
            const std::lock_guard hold_it(ear->mutex);
            if (ear->timer != nullptr) ear->timer->cancel();
        });
    }
};

}  // namespace

class HostNames::LookUp : public std::enable_shared_from_this<LookUp> {
public:
    explicit LookUp(std::string host) : host_(std::move(host)) {}

    const std::string& host() const noexcept { return host_; }
    /// Throws std::system_error.
    void start() {
        signal_masked_thread([self = shared_from_this()] { self->run(); }).detach();
    }
    void run() noexcept {
        try {
            answer(ask(host_));
        } catch (const std::exception&) {
            // Without memory no caller is notified: each waits until its deadline, and the next
            // one asks anew.
            const std::lock_guard hold(mutex_);
            answered_ = true;
        }
    }
    void answer(result<Addresses> what) {
        std::vector<std::shared_ptr<Ear>> ears;
        {
            const std::lock_guard hold(mutex_);
            outcome_ = std::move(what);
            answered_ = true;
            ears.swap(ears_);
        }
        news_.notify_all();
        for (const auto& ear : ears)
            Ear::tell(ear);
    }
    bool answered() const {
        const std::lock_guard hold(mutex_);
        return answered_;
    }
    result<Addresses> outcome() const {
        const std::lock_guard hold(mutex_);
        return outcome_;
    }
    /// False when there is nothing to wait for any more.
    bool listen(const std::shared_ptr<Ear>& ear) {
        const std::lock_guard hold(mutex_);
        if (!answered_) ears_.push_back(ear);
        return !answered_;
    }
    void forget(const std::shared_ptr<Ear>& ear) {
        const std::lock_guard hold(mutex_);
        std::erase(ears_, ear);
    }
    void wait(boot_clock::time_point deadline) {
        std::unique_lock hold(mutex_);
        news_.wait_for(hold, deadline - boot_clock::now(), [this] { return answered_; });
    }

private:
    const std::string host_;
    mutable std::mutex mutex_;
    std::condition_variable news_;
    bool answered_ = false;
    result<Addresses> outcome_ = error_code(asio::error::timed_out);
    std::vector<std::shared_ptr<Ear>> ears_;
};

std::string HostNames::words(const error_code& ec) {
    return ec == asio::error::timed_out ? "the name server does not answer" : ec.message();
}

HostNames::HostNames() = default;
HostNames::~HostNames() = default;

std::shared_ptr<HostNames::LookUp> HostNames::begin(const std::string& host) {
    auto made = std::make_shared<LookUp>(host);
    error_code not_numeric;
    const auto address = asio::ip::make_address(host, not_numeric);
    if (!not_numeric) {
        made->answer(Addresses{address});
        return made;
    }
    const std::lock_guard hold(mutex_);
    std::erase_if(under_way_, [](const auto& one) { return one->answered(); });
    for (const auto& one : under_way_)
        if (one->host() == host) return one;
    try {
        made->start();
        under_way_.push_back(made);
    } catch (const std::system_error& e) {
        made->answer(error_code(e.code().value(), boost::system::system_category()));
    }
    return made;
}

asio::awaitable<std::vector<result<HostNames::Addresses>>> HostNames::look_up(
    std::vector<std::string> hosts, boot_clock::time_point deadline) {
    asio::steady_timer timer(co_await asio::this_coro::executor);
    std::vector<std::shared_ptr<LookUp>> all;
    // Its end, also where the coroutine is destroyed, is the end of what the threads may touch.
    struct Listening {
        std::vector<std::shared_ptr<LookUp>>& all;
        const std::shared_ptr<Ear> ear = std::make_shared<Ear>();
        ~Listening() {
            for (const auto& one : all)
                one->forget(ear);
            const std::lock_guard hold(ear->mutex);
            ear->timer = nullptr;
        }
    };
    const Listening listening{all};
    listening.ear->executor = timer.get_executor();
    listening.ear->timer = &timer;
    for (const std::string& host : hosts)
        all.push_back(begin(host));
    for (const auto& one : all)
        while (boot_clock::now() < deadline && one->listen(listening.ear)) {
            timer.expires_after(deadline - boot_clock::now());
            error_code ended;
            auto token = asio::redirect_error(asio::use_awaitable, ended);
            co_await timer.async_wait(token);
            one->forget(listening.ear);
        }
    std::vector<result<Addresses>> outcomes;
    outcomes.reserve(all.size());
    for (const auto& one : all)
        outcomes.push_back(one->outcome());
    co_return outcomes;
}

result<HostNames::Addresses> HostNames::wait_for(const std::string& host,
                                                 boot_clock::time_point deadline) {
    const auto one = begin(host);
    one->wait(deadline);
    return one->outcome();
}

}  // namespace holdfast::spi
