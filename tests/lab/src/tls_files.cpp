// A configuration of our own is given to openssl, so that nothing depends on the machine's
// openssl.cnf.
#include "holdfast/lab/tls_files.hpp"

#include "holdfast/lab/error.hpp"
#include "holdfast/lab/process.hpp"
#include "text_file.hpp"

namespace holdfast::lab {
namespace {

constexpr const char* configuration = R"([req]
distinguished_name = name
prompt = no
[name]
CN = Holdfast lab
[authority]
basicConstraints = critical,CA:TRUE
keyUsage = critical,keyCertSign,cRLSign
subjectKeyIdentifier = hash
[server]
basicConstraints = critical,CA:FALSE
keyUsage = critical,digitalSignature
extendedKeyUsage = serverAuth,clientAuth
subjectAltName = IP:127.0.0.1,DNS:localhost
)";

// What signs anything in openssl.cnf, with a section for one certificate.
constexpr const char* signing = R"([ca]
default_ca = lab
[lab]
database = index.txt
new_certs_dir = .
default_md = sha256
policy = any
rand_serial = yes
[any]
commonName = supplied
[certificate]
basicConstraints = critical,CA:FALSE
keyUsage = critical,digitalSignature
)";

void openssl(const std::filesystem::path& directory, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "openssl");
    ProcessOptions options;
    options.argv = std::move(arguments);
    options.package = "openssl";
    options.directory = directory;
    options.log = directory / "openssl.log";
    Process command(std::move(options));
    const auto status = command.wait(std::chrono::seconds(60));
    if (!status || status->by_signal || status->code != 0) {
        throw LabError("this failed: " + command.command_line() + "\n" + command.log_tail());
    }
}

void request(const std::filesystem::path& directory, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"req", "-config", "openssl.cnf", "-newkey", "ec",
                                         "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"});
    openssl(directory, std::move(arguments));
}

}  // namespace

TlsFiles make_tls_files(const std::filesystem::path& directory) {
    detail::write_text(directory / "openssl.cnf", configuration);
    request(directory, {"-x509", "-days", "30", "-extensions", "authority", "-subj",
                        "/CN=Holdfast lab authority", "-keyout", "ca.key", "-out", "ca.crt"});
    request(directory,
            {"-x509", "-days", "30", "-extensions", "server", "-subj", "/CN=127.0.0.1", "-CA",
             "ca.crt", "-CAkey", "ca.key", "-keyout", "server.key", "-out", "server.crt"});
    return {directory / "ca.crt", directory / "server.crt", directory / "server.key"};
}

TlsFiles make_certificate(const TlsFiles& authority, const std::filesystem::path& directory,
                          const CertificateOptions& o) {
    detail::write_text(directory / "openssl.cnf", std::string(configuration) + signing +
                                                      "extendedKeyUsage = " + o.usages +
                                                      "\nsubjectAltName = " + o.names + "\n");
    detail::write_text(directory / "index.txt", "");
    request(directory,
            {"-new", "-subj", "/CN=Holdfast lab", "-keyout", "own.key", "-out", "own.csr"});
    const auto key = authority.ca.parent_path() / "ca.key";
    openssl(directory,
            {"ca", "-batch", "-notext", "-config", "openssl.cnf", "-cert", authority.ca.string(),
             "-keyfile", key.string(), "-extensions", "certificate", "-startdate", o.from,
             "-enddate", o.until, "-in", "own.csr", "-out", "own.crt"});
    return {authority.ca, directory / "own.crt", directory / "own.key"};
}

}  // namespace holdfast::lab
