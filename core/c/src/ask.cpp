// An operator's questions: the answers are the JSON of the command.
#include <cstdlib>
#include <cstring>
#include <future>
#include <new>

#include "as_json.hpp"
#include "call.hpp"
#include "failure.hpp"
#include "handles.hpp"
#include "holdfast/spi/mapped_handler.hpp"
#include "json_text.hpp"
#include "sized.hpp"

namespace holdfast::c {
namespace {

/// A question, with all that the caller's struct has and points to.
class Asked {
public:
    Asked(const Client& c, const hf_question& q)
        : client_(c), what_(q.what), name_(q.name != nullptr ? q.name : ""), limit_(q.limit) {
        if (q.token != 0) which_.if_token = FencingToken{q.token};
        if (q.owner != nullptr) which_.owner = q.owner;
        break_.if_token = which_.if_token;
        break_.owner = which_.owner;
        break_.now = q.now != 0;
        if (q.note != nullptr) break_.note = q.note;
        if (q.wait != 0) wait_ = q.wait == HF_FOREVER ? forever : milliseconds(q.wait);
        if (q.owner != nullptr) known_.emplace().owner = q.owner;
    }
    /// What can be refused before anything is asked.
    Failure check() {
        if (what_ < HF_INSPECT || what_ > HF_LEADER)
            return {errc::bad_config, "there is no such question"};
        if (what_ != HF_LEADER) return {};
        Diagnostics words;
        auto election = client_.make_election(name_, {}, &words);
        if (!election) return {election.error(), words};
        election_.emplace(std::move(*election));
        return {};
    }
    /// Calls handler(error_code, JSON) once. Both references outlive the call.
    template <class Handler>
    static void start(const std::shared_ptr<const Asked>& q, Diagnostics& words, Handler handler) {
        auto written =
            spi::map_handler(std::move(handler), [q](auto&& h, error_code ec, const auto& found) {
                std::move(h)(ec, ec ? std::string() : q->text(found));
            });
        const Client& client = q->client_;
        switch (q->what_) {
            case HF_INSPECT:
                return client.async_inspect(q->name_, &words, std::move(written));
            case HF_LIST:
                return client.async_list(q->name_, q->limit_, &words, std::move(written));
            case HF_BREAK:
                return client.async_break_lock(q->name_, q->break_, &words, std::move(written));
            case HF_ASK:
                return client.async_request_release(q->name_, q->which_, &words,
                                                    std::move(written));
            case HF_EXAMINE:
                return client.async_examine(&words, std::move(written));
            default:
                if (q->wait_)
                    return q->election_->async_observe(q->known_, *q->wait_, std::move(written));
                return q->election_->async_leader(&words, std::move(written));
        }
    }

private:
    std::string text(const Inspection& i) const { return json_text(as_json(i, client_.url())); }
    std::string text(const std::vector<std::string>& names) const {
        return lines(names, [](const std::string& one) { return listed(one); });
    }
    std::string text(const std::vector<Broken>& all) const {
        return lines(all, [this](const Broken& one) { return broken(name_, one); });
    }
    std::string text(const std::vector<Holder>& holders) const {
        return json_text(asked(name_, holders));
    }
    std::string text(const Examination& e) const { return json_text(as_json(e, client_)); }
    std::string text(const std::optional<Leader>& l) const { return json_text(led(name_, l)); }

    static std::string lines(const auto& all, auto object_of) {
        std::string text;
        for (const auto& one : all) {
            if (!text.empty()) text += '\n';
            text += json_text(object_of(one));
        }
        return text;
    }

    const Client client_;
    const int what_;
    const std::string name_;
    const std::size_t limit_;
    HolderFilter which_;
    BreakOptions break_;
    std::optional<milliseconds> wait_;
    std::optional<Leader> known_;
    std::optional<Election> election_;
};

/// Calls `begin` with the question, unless it is refused.
Failure with_question(const hf_client& client, const hf_question* given, auto begin) {
    if (client.forked()) return Failure(make_error_code(errc::forked));
    const auto q = std::make_shared<Asked>(client.client, taken<hf_question>(given, HF_QUESTION));
    auto why = q->check();
    return why.code != HF_OK ? why : begin(q);
}

}  // namespace

char* copied(const std::string& text) {
    char* const copy = ::strdup(text.c_str());
    if (copy == nullptr) throw std::bad_alloc();
    return copy;
}

}  // namespace holdfast::c

using namespace holdfast;

int hf_ask(hf_client* client, const hf_question* given, char** json, hf_error* error) {
    struct Answer {
        Diagnostics words;
        std::promise<std::pair<error_code, std::string>> came;
    };
    return c::guarded(error, [&] {
        return c::with_question(*client, given, [&](const auto& q) {
            const auto answer = std::make_shared<Answer>();
            auto came = answer->came.get_future();
            c::Asked::start(q, answer->words, [answer](error_code ec, std::string text) {
                answer->came.set_value({ec, std::move(text)});
            });
            const auto [ec, text] = came.get();
            if (ec) return c::Failure(ec, answer->words);
            *json = c::copied(text);
            return c::Failure();
        });
    });
}

int hf_ask_start(hf_client* client, const hf_question* given, hf_queue* queue, uint64_t* call,
                 hf_error* error) {
    return c::guarded(error, [&] {
        if (queue->queue->forked()) return c::Failure(make_error_code(errc::forked));
        return c::with_question(*client, given, [&](const auto& q) {
            c::Call::start(queue->queue, *call, [q](auto handler, Diagnostics& words) {
                c::Asked::start(q, words, std::move(handler));
            });
            return c::Failure();
        });
    });
}

void hf_string_free(char* json) {
    std::free(json);
}
