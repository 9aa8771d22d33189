// The certificates and the key of a client's connections, and what is expected of a server's.
#pragma once
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ssl/context.hpp>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "options.hpp"

namespace holdfast::tls {

namespace asio = boost::asio;

/// The number of a mark at each session: the server has asked for a client certificate.
inline const int asked_mark = SSL_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);

/// A file that has changed is read again for the next connection, so that a rotated one counts
/// without a restart. Thread-safe.
class Context {
public:
    using Native = asio::ssl::context;
    using Warn = std::function<void(std::string)>;

    /// Any thread calls `warn` when a file that was read cannot be any more. Throws
    /// boost::system::system_error when one cannot be read now.
    Context(Options o, Warn warn) : options_(std::move(o)), warn_(std::move(warn)) { read(); }

    /// For a new connection, which may outlive it. As long as a file cannot be used, as in the
    /// middle of a rotation, those that were read before.
    std::shared_ptr<Native> current() {
        std::string news;
        std::shared_ptr<Native> found;
        {
            const std::lock_guard hold(mutex_);
            std::string before = std::exchange(trouble_, {});
            try {
                if (!settled_ || stamps() != read_) read();
            } catch (const boost::system::system_error& e) {
                trouble_ = e.what();
                if (trouble_ != before) news = trouble_;
            }
            found = native_;
        }
        if (!news.empty() && warn_) warn_(news + "; the one read before stays in use");
        return found;
    }
    /// Why current() is not what the files are now; empty: it is.
    std::string trouble() const {
        const std::lock_guard hold(mutex_);
        return trouble_;
    }
    /// The name that the certificate of `host` must have.
    const std::string& name_at(const std::string& host) const noexcept {
        return options_.server_name.empty() ? host : options_.server_name;
    }

private:
    using Stamp = std::array<std::int64_t, 5>;

    std::vector<Stamp> stamps() const {
        std::string authorities = options_.ca_file;
        if (authorities.empty()) {
            const char* const named = ::secure_getenv(X509_get_default_cert_file_env());
            authorities = named != nullptr ? named : X509_get_default_cert_file();
        }
        std::vector<Stamp> all;
        for (const std::string& file : {authorities, options_.cert_file, options_.key_file}) {
            struct stat s {};
            if (!file.empty() && ::stat(file.c_str(), &s) == 0)
                all.push_back({static_cast<std::int64_t>(s.st_dev),
                               static_cast<std::int64_t>(s.st_ino), s.st_size,
                               since_epoch(s.st_mtim), since_epoch(s.st_ctim)});
            else
                all.emplace_back();
        }
        return all;
    }

    static std::int64_t since_epoch(const timespec& t) noexcept {
        return t.tv_sec * std::int64_t{1000000000} + t.tv_nsec;
    }

    void read() {
        timespec now{};
        ::clock_gettime(CLOCK_REALTIME, &now);
        auto before = stamps();
        native_ = load(options_);
        // The time of a file is coarse, so a later change within the same tick would not show.
        settled_ = std::all_of(before.begin(), before.end(), [&](const Stamp& s) {
            return s.back() + std::int64_t{1000000000} < since_epoch(now);
        });
        read_ = std::move(before);
    }

    static std::shared_ptr<Native> load(const Options& o) {
        auto c = std::make_shared<Native>(Native::tls_client);
        c->set_options(Native::default_workarounds | Native::no_sslv2 | Native::no_sslv3 |
                       Native::no_tlsv1 | Native::no_tlsv1_1);
        c->set_verify_mode(o.verify ? asio::ssl::verify_peer : asio::ssl::verify_none);
        SSL_CTX_set_cert_cb(
            c->native_handle(),
            [](SSL* session, void*) {
                return SSL_set_ex_data(session, asked_mark, session);  // anything but null
            },
            nullptr);
        // Without a callback OpenSSL asks on the terminal, or reads standard input.
        const auto asked = std::make_shared<bool>(false);
        c->set_password_callback([asked](std::size_t, Native::password_purpose) {
            *asked = true;
            return std::string();
        });
        const auto use = [&](const std::string& file, const char* what, auto read_file) {
            error_code ec;
            read_file(ec);
            if (!ec) return;
            const std::string why =
                *asked ? "it is encrypted; use a key without a pass phrase, mode 600"
                       : ec.message();
            throw boost::system::system_error(
                make_error_code(errc::bad_config),
                std::string(what) + ": " + file + " cannot be used (" + why + ")");
        };
        if (o.ca_file.empty()) {
            error_code ignored;
            c->set_default_verify_paths(ignored);
        } else {
            use(o.ca_file, "tls_ca_file",
                [&](error_code& ec) { c->load_verify_file(o.ca_file, ec); });
        }
        if (!o.cert_file.empty()) {
            use(o.cert_file, "tls_cert_file",
                [&](error_code& ec) { c->use_certificate_chain_file(o.cert_file, ec); });
            use(o.key_file, "tls_key_file",
                [&](error_code& ec) { c->use_private_key_file(o.key_file, Native::pem, ec); });
        }
        return c;
    }

    const Options options_;
    const Warn warn_;
    mutable std::mutex mutex_;
    std::shared_ptr<Native> native_;
    std::vector<Stamp> read_;
    bool settled_ = false;
    std::string trouble_;
};

/// Null without TLS. Throws as Context does.
inline std::shared_ptr<Context> make_context(const Options& o, Context::Warn warn) {
    return o.on ? std::make_shared<Context>(o, std::move(warn)) : nullptr;
}

/// Before the handshake: the server must have a certificate for `name`, if the context demands one
/// at all. The handshake names it, unless it is an address.
inline void expect(SSL* session, const std::string& name) {
    error_code numeric;
    asio::ip::make_address(name, numeric);
    if (!numeric && X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session), name.c_str()) == 1)
        return;
    // What OpenSSL takes for no address (fe80::1%eth0) is no certificate's host either.
    if (SSL_set1_host(session, name.c_str()) != 1) throw std::bad_alloc();
    if (!numeric) return;
    // SSL_set_tlsext_host_name without its old-style cast.
    std::string copy = name;
    SSL_ctrl(session, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, copy.data());
}

/// For people, behind the end of a connection of which explain() has nothing to say: it may be a
/// refusal, or the server has failed.
inline std::string after_asking(SSL* session) {
    return SSL_get_ex_data(session, asked_mark) == nullptr
               ? std::string()
               : ", after the server asked for the client's certificate (tls_cert_file)";
}

/// What is wrong with the client's own certificate, as far as that can be seen here; or empty.
inline std::string flaw(X509* own) {
    if (X509_cmp_current_time(X509_get0_notAfter(own)) < 0) return "it has expired";
    if (X509_cmp_current_time(X509_get0_notBefore(own)) > 0) return "it is not valid yet";
    if (X509_check_purpose(own, X509_PURPOSE_SSL_CLIENT, 0) == 0)
        return "it lacks clientAuth among its extended usages";
    return {};
}

/// For people: why there is no session, or no longer one. `reason`: OpenSSL's last error, 0 if the
/// connection was cut off before the first answer. `name`: as for expect(). Empty: as far as can be
/// seen, TLS was not the cause.
inline std::string explain(SSL* session, unsigned long reason, const std::string& name) {
    if (ERR_GET_LIB(reason) == ERR_LIB_SYS)
        reason = 0;  // what OpenSSL 3.5 makes of a connection's end
    X509* const own = SSL_get_certificate(session);
    const bool asked = SSL_get_ex_data(session, asked_mark) != nullptr;
    const bool alert =
        ERR_GET_LIB(reason) == ERR_LIB_SSL && ERR_GET_REASON(reason) > SSL_AD_REASON_OFFSET;
    if (own == nullptr && asked && (alert || reason == 0))
        return "the server asks for a client certificate: set tls_cert_file and tls_key_file";
    const std::string why = own == nullptr ? std::string() : flaw(own);
    // Of the alert, the end of the connection may have left nothing.
    if (reason == 0)
        return !asked || why.empty()
                   ? std::string()
                   : "the server asked for the client's certificate and closed the connection; of "
                     "tls_cert_file: " +
                         why;
    const char* const known = ERR_reason_error_string(reason);
    const std::string words = known != nullptr ? known : "error " + std::to_string(reason);
    switch (ERR_GET_REASON(reason)) {
        case SSL_R_CERTIFICATE_VERIFY_FAILED:
            break;
        case SSL_R_WRONG_VERSION_NUMBER:
        case SSL_R_HTTP_REQUEST:
            return "the server does not speak TLS on this port (" + words + ")";
        default:
            if (!alert || own == nullptr) return words;
            return "the server refused the session (" + words + ")" +
                   (why.empty() ? why : "; of tls_cert_file: " + why);
    }
    const long verified = SSL_get_verify_result(session);
    const std::string said = X509_verify_cert_error_string(verified);
    switch (verified) {
        case X509_V_ERR_HOSTNAME_MISMATCH:
        case X509_V_ERR_IP_ADDRESS_MISMATCH:
            return "the certificate is not for the host " + name +
                   ": connect by a name that it has, or set tls_server_name to one";
        case X509_V_ERR_INVALID_PURPOSE:
            return "the server's certificate lacks serverAuth among its extended usages";
        case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
        case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
        case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
        case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
        case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
        case X509_V_ERR_CERT_SIGNATURE_FAILURE:
            return said + ": tls_ca_file must have the authority of the server's certificate";
        default:
            return "the server's certificate: " + said;
    }
}

}  // namespace holdfast::tls
