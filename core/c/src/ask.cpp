// An operator's questions: the answers are the JSON of the command.
#include <cstdlib>
#include <cstring>
#include <new>

#include "as_json.hpp"
#include "failure.hpp"
#include "handles.hpp"
#include "json_text.hpp"
#include "sized.hpp"

namespace holdfast::c {
namespace {

/// A question, with what the library is asked for it.
struct Asked {
    const Client& client;
    const hf_question& question;
    const std::string name;
    Diagnostics words{};
    std::string text{};

    void add(const boost::json::object& o) {
        if (!text.empty()) text += '\n';
        text += json_text(o);
    }
    HolderFilter which() const {
        HolderFilter filter;
        if (question.token != 0) filter.if_token = FencingToken{question.token};
        if (question.owner != nullptr) filter.owner = question.owner;
        return filter;
    }
    /// `write` gets what was found.
    Failure answer(const auto& found, auto write) {
        if (!found) return {found.error(), words};
        write(*found);
        return {};
    }

    Failure inspect() {
        return answer(client.inspect(name, &words),
                      [&](const Inspection& i) { add(as_json(i, client.url())); });
    }
    Failure list() {
        const auto found = client.list(name, static_cast<std::size_t>(question.limit), &words);
        return answer(found, [&](const std::vector<std::string>& names) {
            for (const std::string& one : names)
                add(listed(one));
        });
    }
    Failure break_lock() {
        BreakOptions options;
        options.if_token = which().if_token;
        options.owner = which().owner;
        options.now = question.now != 0;
        if (question.note != nullptr) options.note = question.note;
        return answer(client.break_lock(name, options, &words),
                      [&](const std::vector<Broken>& all) {
                          for (const Broken& one : all)
                              add(broken(name, one));
                      });
    }
    Failure ask() {
        return answer(client.request_release(name, which(), &words),
                      [&](const std::vector<Holder>& holders) { add(asked(name, holders)); });
    }
    Failure examine() {
        return answer(client.examine(&words),
                      [&](const Examination& e) { add(as_json(e, client)); });
    }
    Failure leader() {
        const auto election = client.make_election(name, {}, &words);
        if (!election) return {election.error(), words};
        const auto write = [&](const std::optional<Leader>& l) { add(led(name, l)); };
        if (question.wait == 0) return answer(election->leader(&words), write);
        std::optional<Leader> known;
        if (question.owner != nullptr) known.emplace().owner = question.owner;
        const milliseconds wait =
            question.wait == HF_FOREVER ? forever : milliseconds(question.wait);
        return answer(election->observe(known, wait), write);
    }

    Failure any() {
        switch (question.what) {
            case HF_INSPECT:
                return inspect();
            case HF_LIST:
                return list();
            case HF_BREAK:
                return break_lock();
            case HF_ASK:
                return ask();
            case HF_EXAMINE:
                return examine();
            case HF_LEADER:
                return leader();
            default:
                return {errc::bad_config, "there is no such question"};
        }
    }
};

}  // namespace
}  // namespace holdfast::c

using namespace holdfast;

int hf_ask(hf_client* client, const hf_question* given, char** json, hf_error* error) {
    return c::guarded(error, [&] {
        const auto question = c::taken<hf_question>(given, HF_QUESTION);
        c::Asked one{client->client, question, question.name != nullptr ? question.name : ""};
        auto why = one.any();
        if (why.code != HF_OK) return why;
        *json = ::strdup(one.text.c_str());
        if (*json == nullptr) throw std::bad_alloc();
        return why;
    });
}

void hf_string_free(char* json) {
    std::free(json);
}
