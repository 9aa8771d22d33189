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

void run(const std::filesystem::path& directory, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(),
                     {"openssl", "req", "-x509", "-config", "openssl.cnf", "-newkey", "ec",
                      "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30"});
    ProcessOptions options;
    options.argv = std::move(arguments);
    options.package = "openssl";
    options.directory = directory;
    options.log = directory / "openssl.log";
    Process openssl(std::move(options));
    const auto status = openssl.wait(std::chrono::seconds(60));
    if (!status || status->by_signal || status->code != 0) {
        throw LabError("this failed: " + openssl.command_line() + "\n" + openssl.log_tail());
    }
}

}  // namespace

TlsFiles make_tls_files(const std::filesystem::path& directory) {
    detail::write_text(directory / "openssl.cnf", configuration);
    run(directory, {"-extensions", "authority", "-subj", "/CN=Holdfast lab authority", "-keyout",
                    "ca.key", "-out", "ca.crt"});
    run(directory, {"-extensions", "server", "-subj", "/CN=127.0.0.1", "-CA", "ca.crt", "-CAkey",
                    "ca.key", "-keyout", "server.key", "-out", "server.crt"});
    return {directory / "ca.crt", directory / "server.crt", directory / "server.key"};
}

}  // namespace holdfast::lab
