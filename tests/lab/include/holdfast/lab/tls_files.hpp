// Certificates for a test server, made afresh by the openssl command: none is kept in the sources,
// where it would expire one day and break the tests.
#pragma once

#include <filesystem>
#include <string>

namespace holdfast::lab {

/// The files of one throw-away authority and one server certificate for 127.0.0.1 and localhost,
/// with names below one directory.
struct TlsFiles {
    std::filesystem::path ca;    ///< the authority's certificate, for clients to trust
    std::filesystem::path cert;  ///< the server's certificate
    std::filesystem::path key;   ///< the server's private key
};

/// Makes the files in `directory`, valid for 30 days.
///
/// Errors: LabError when openssl is missing or fails. Blocking: some 50 ms. Thread safety: any
/// thread, with different directories.
[[nodiscard]] TlsFiles make_tls_files(const std::filesystem::path& directory);

struct CertificateOptions {
    std::string usages = "serverAuth,clientAuth";                     ///< extended ones
    std::string names = "IP:127.0.0.1,DNS:localhost";                 ///< as openssl.cnf has them
    std::string from = "20200101000000Z", until = "20490101000000Z";  ///< YYYYMMDDHHMMSSZ
};

/// One more certificate and key of the authority that make_tls_files made, in `directory`. The rest
/// as there.
[[nodiscard]] TlsFiles make_certificate(const TlsFiles& authority,
                                        const std::filesystem::path& directory,
                                        const CertificateOptions&);

}  // namespace holdfast::lab
