// A connected descriptor, in clear or over TLS, for a thread that reads and writes by itself.
#pragma once
#include <openssl/bio.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <memory>
#include <new>
#include <string>

#include "context.hpp"

namespace holdfast::tls {

/// Its calls are those of the system, with their results and `errno`. Over TLS, EINTR from
/// receive() says that something has come, but nothing whole yet; EPROTO, that TLS has failed. Not
/// thread-safe. Closed with the object.
class Socket {
public:
    Socket() = default;
    ~Socket() { close(); }
    Socket(const Socket&) = delete;
    Socket& operator=(const Socket&) = delete;

    /// Owns it from here on.
    void assign(int descriptor) noexcept {
        close();
        fd_ = descriptor;
    }
    void close() noexcept {
        session_.reset();
        if (fd_ >= 0) ::close(fd_);
        fd_ = -1;
    }
    int descriptor() const noexcept { return fd_; }
    bool is_open() const noexcept { return fd_ >= 0; }

    /// Before the first byte: from here on TLS with `host`. The context may end before.
    void secure(Context& context, const std::string& host) {
        name_ = context.name_at(host);
        const auto files = context.current();
        trouble_ = context.trouble();
        session_.reset(SSL_new(files->native_handle()));
        BIO* const bytes = session_ && method != nullptr ? BIO_new(method) : nullptr;
        if (bytes == nullptr) throw std::bad_alloc();
        BIO_set_data(bytes, this);
        BIO_set_init(bytes, 1);
        SSL_set_bio(session_.get(), bytes, bytes);
        SSL_set_connect_state(session_.get());
        expect(session_.get(), name_);
        SSL_set_mode(session_.get(), SSL_MODE_ENABLE_PARTIAL_WRITE);
        SSL_set_mode(session_.get(), SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
        // A server that begins anew would make a write wait for a read.
        SSL_set_options(session_.get(), SSL_OP_NO_RENEGOTIATION);
        // A record's head and its body by one call of the system.
        SSL_set_read_ahead(session_.get(), 1);
    }

    /// As far as it goes without waiting. Returns the event to wait for, 0 when all is done; -1: it
    /// failed, see failure().
    int shake_hands() {
        begin(false);
        const int n = SSL_do_handshake(session_.get());
        if (n == 1) return 0;
        switch (SSL_get_error(session_.get(), n)) {
            case SSL_ERROR_WANT_READ:
                return POLLIN;
            case SSL_ERROR_WANT_WRITE:
                return POLLOUT;
            default:
                return -1;
        }
    }

    /// Never waits, and raises no SIGPIPE.
    ssize_t send(const char* from, std::size_t size) {
        if (!session_) return ::send(fd_, from, size, MSG_NOSIGNAL | MSG_DONTWAIT);
        begin(false);
        std::size_t sent = 0;
        const int n = SSL_write_ex(session_.get(), from, size, &sent);
        return n == 1 ? static_cast<ssize_t>(sent) : failed(n, SSL_ERROR_WANT_WRITE);
    }

    /// `flags`: MSG_DONTWAIT and MSG_PEEK. Waits for one arrival of bytes at most.
    ssize_t receive(char* to, std::size_t size, int flags) {
        if (!session_) return ::recv(fd_, to, size, flags);
        begin((flags & MSG_DONTWAIT) == 0);
        std::size_t got = 0;
        const int n = (flags & MSG_PEEK) != 0 ? SSL_peek_ex(session_.get(), to, size, &got)
                                              : SSL_read_ex(session_.get(), to, size, &got);
        return n == 1 ? static_cast<ssize_t>(got) : failed(n, SSL_ERROR_WANT_READ);
    }
    /// Bytes have arrived that no poll() would report.
    bool has_pending() const noexcept { return session_ && SSL_has_pending(session_.get()) == 1; }

    /// For people: why the last call failed, if TLS was the cause; else empty. Before it is closed.
    std::string failure() const {
        if (!session_) return {};
        std::string words = explain(session_.get(), ERR_peek_last_error(), name_);
        return words.empty() || trouble_.empty() ? words : words + "; " + trouble_;
    }

    /// As tls::after_asking; empty in clear.
    std::string after_asking() const {
        return session_ ? tls::after_asking(session_.get()) : std::string();
    }

private:
    struct Free {
        void operator()(SSL* s) const noexcept { SSL_free(s); }
    };

    void begin(bool may_wait) noexcept {
        if (ERR_peek_error() != 0) ERR_clear_error();  // which is slow, and rarely needed
        // At the end of a connection nobody sets it.
        errno = 0;
        may_wait_ = may_wait;
        came_ = false;
    }

    ssize_t failed(int result, int waits) noexcept {
        const int code = errno;
        const int why = SSL_get_error(session_.get(), result);
        if (why == SSL_ERROR_ZERO_RETURN) return 0;
        if (why == waits)
            errno = came_ ? EINTR : EAGAIN;
        else if (why == SSL_ERROR_SYSCALL)  // of which OpenSSL 3.5 has an error, and 3.0 none
            errno = code != 0 ? code : ECONNRESET;
        else
            errno = EPROTO;
        return -1;
    }

    // OpenSSL's own would raise SIGPIPE, and could wait more than once.
    static int put(BIO* b, const char* from, int size) {
        auto& self = *static_cast<Socket*>(BIO_get_data(b));
        BIO_clear_retry_flags(b);
        const ssize_t n =
            ::send(self.fd_, from, static_cast<std::size_t>(size), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_write(b);
        return static_cast<int>(n);
    }
    static int get(BIO* b, char* to, int size) {
        auto& self = *static_cast<Socket*>(BIO_get_data(b));
        BIO_clear_retry_flags(b);
        const int flags = self.may_wait_ ? 0 : MSG_DONTWAIT;
        self.may_wait_ = false;
        const ssize_t n = ::recv(self.fd_, to, static_cast<std::size_t>(size), flags);
        self.came_ = self.came_ || n > 0 || (n < 0 && errno == EINTR);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_read(b);
        return static_cast<int>(n);
    }
    static long control(BIO*, int what, long, void*) { return what == BIO_CTRL_FLUSH ? 1 : 0; }

    static const BIO_METHOD* make_method() noexcept {
        BIO_METHOD* const m = BIO_meth_new(
            BIO_get_new_index() | BIO_TYPE_SOURCE_SINK | BIO_TYPE_DESCRIPTOR, "holdfast");
        if (m == nullptr) return m;
        BIO_meth_set_write(m, &put);
        BIO_meth_set_read(m, &get);
        BIO_meth_set_ctrl(m, &control);
        return m;
    }
    static inline const BIO_METHOD* const method = make_method();

    int fd_ = -1;
    std::unique_ptr<SSL, Free> session_;
    std::string name_, trouble_;
    bool may_wait_ = false;  // for the next bytes; what follows them is not waited for
    bool came_ = false;      // some bytes, in the call under way
};

}  // namespace holdfast::tls
