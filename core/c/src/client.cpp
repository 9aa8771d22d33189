#include "holdfast/client.hpp"

#include "failure.hpp"
#include "handles.hpp"
#include "queue.hpp"
#include "sized.hpp"

using namespace holdfast;

int hf_open(const char* what, const hf_client_options* given, hf_client** client, hf_error* error) {
    return c::guarded(error, [&] {
        const auto o = c::taken<hf_client_options>(given, HF_CLIENT_OPTIONS);
        Diagnostics words;
        ClientOptions options;
        options.diagnostics = &words;
        options.close_grace = milliseconds(o.close_grace);
        if (o.config_file != nullptr) options.config_file = o.config_file;
        if (o.reports != nullptr)
            options.events = [queue = o.reports->queue](const Event& e) { queue->report(e); };
        auto opened = Client::open(what != nullptr ? what : "", options);
        if (!opened) return c::Failure(opened.error(), words);
        *client = new hf_client(std::move(*opened));
        return c::Failure();
    });
}

void hf_close(hf_client* client) {
    Client(client->client).close();
}

void hf_client_free(hf_client* client) {
    if (client == nullptr) return;
    hf_close(client);
    delete client;
}
