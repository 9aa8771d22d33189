// The requests of a Handle: the client library's calls and callbacks behind one kind of answer.
#include <array>
#include <boost/asio/post.hpp>

#include "client_library.hpp"
#include "handle.hpp"
#include "holdfast/spi/bounded_time.hpp"

namespace holdfast::zookeeper {
namespace {

/// The callback's share of the call, which lives until it is answered.
const void* lend(const CallPtr& call) {
    return new CallPtr(call);
}
CallPtr take(const void* data) {
    const std::unique_ptr<const CallPtr> lent(static_cast<const CallPtr*>(data));
    return *lent;
}

void keep(Call& c, const Stat* s) {
    if (s == nullptr) return;
    c.czxid = s->czxid;
    c.mzxid = s->mzxid;
    c.version = s->version;
    c.session = s->ephemeralOwner;
    c.modified = spi::bounded_length<milliseconds>(s->mtime);
}

void done_void(int rc, const void* data) {
    take(data)->finish(rc);
}
void done_stat(int rc, const Stat* s, const void* data) {
    const CallPtr c = take(data);
    if (rc == ZOK) keep(*c, s);
    c->finish(rc);
}
void done_text(int rc, const char* text, const void* data) {
    const CallPtr c = take(data);
    if (rc == ZOK && text != nullptr) c->text = text;
    c->finish(rc);
}
void done_text_stat(int rc, const char* text, const Stat* s, const void* data) {
    const CallPtr c = take(data);
    if (rc == ZOK && text != nullptr) c->text = text;
    if (rc == ZOK) keep(*c, s);
    c->finish(rc);
}
void done_data(int rc, const char* value, int size, const Stat* s, const void* data) {
    const CallPtr c = take(data);
    if (rc == ZOK && value != nullptr && size > 0)
        c->text.assign(value, static_cast<std::size_t>(size));
    if (rc == ZOK) keep(*c, s);
    c->finish(rc);
}
void done_list(int rc, const String_vector* all, const void* data) {
    const CallPtr c = take(data);
    if (rc == ZOK && all != nullptr)
        for (std::int32_t i = 0; i < all->count; ++i)
            if (all->data[i] != nullptr) c->children.emplace_back(all->data[i]);
    c->finish(rc);
}

const ACL_vector* rights(const Options& o) {
    return o.creator_acl ? &ZOO_CREATOR_ALL_ACL : &ZOO_OPEN_ACL_UNSAFE;
}

}  // namespace

template <class Send>
CallPtr Handle::send(Then then, Send call_library) {
    auto call = std::make_shared<Call>();
    call->then = [weak = weak_from_this(), connection = connection_, sent = boot_clock::now(),
                  then = std::move(then)](Call& c) {
        const auto self = weak.lock();
        if (self && self->connection_ == connection) self->answered(sent);
        if (then) then(c);
    };
    int rc = ZCONNECTIONLOSS;
    if (connected() && zh_ != nullptr && !closing_) {
        shared_->requests.fetch_add(1, std::memory_order_relaxed);
        if (unanswered_++ == 0) silent_since_ = boot_clock::now();
        const void* lent = lend(call);
        gather(true);
        rc = call_library(zh_, lent);
        if (rc != ZOK) take(lent);
        if (given_up()) down_ = true;
        turn_soon();
    }
    if (rc != ZOK) boost::asio::post(shared_->engine, [call, rc] { call->finish(rc); });
    return call;
}

CallPtr Handle::create(const std::string& path, std::string_view data, Kind kind, Then then) {
    const int size = static_cast<int>(data.size());
    const ACL_vector* acl = rights(shared_->options);
    if (kind == Kind::sequential)
        return send(std::move(then), [&](zhandle_t* zh, const void* lent) {
            return zoo_acreate2(zh, path.c_str(), data.data(), size, acl, ZOO_EPHEMERAL_SEQUENTIAL,
                                done_text_stat, lent);
        });
    const int mode = kind == Kind::container   ? ZOO_CONTAINER
                     : kind == Kind::ephemeral ? ZOO_EPHEMERAL
                                               : ZOO_PERSISTENT;
    return send(std::move(then), [&](zhandle_t* zh, const void* lent) {
        return zoo_acreate(zh, path.c_str(), data.data(), size, acl, mode, done_text, lent);
    });
}

CallPtr Handle::remove(const std::string& path, Then then, int version) {
    return send(std::move(then), [&](zhandle_t* zh, const void* lent) {
        return zoo_adelete(zh, path.c_str(), version, done_void, lent);
    });
}

CallPtr Handle::set(const std::string& path, std::string_view data, int version, Then then) {
    return send(std::move(then), [&](zhandle_t* zh, const void* lent) {
        return zoo_aset(zh, path.c_str(), data.data(), static_cast<int>(data.size()), version,
                        done_stat, lent);
    });
}

Handle::Then Handle::noted(Watches Handle::*watches, std::string path, bool absent_too, Then then) {
    return [weak = weak_from_this(), watches, path = std::move(path), absent_too,
            then = std::move(then)](Call& c) {
        const auto self = weak.lock();
        if (self && (c.rc == ZOK || (absent_too && c.rc == ZNONODE)))
            ((*self).*watches).insert(path);
        if (then) then(c);
    };
}

CallPtr Handle::get(const std::string& path, bool watch, Then then) {
    if (watch) then = noted(&Handle::watches_, path, false, std::move(then));
    return send(std::move(then), [&](zhandle_t* zh, const void* lent) {
        // One watch per node and handle, however often it is set: same function, same context.
        return zoo_awget(zh, path.c_str(), watch ? &Handle::on_event : nullptr,
                         watch ? this : nullptr, done_data, lent);
    });
}

CallPtr Handle::list(const std::string& path, Then then, bool watch) {
    if (watch) then = noted(&Handle::child_watches_, path, false, std::move(then));
    return send(std::move(then), [&](zhandle_t* zh, const void* lent) {
        return zoo_awget_children(zh, path.c_str(), watch ? &Handle::on_event : nullptr,
                                  watch ? this : nullptr, done_list, lent);
    });
}

CallPtr Handle::exists(const std::string& path, Then then) {
    then = noted(&Handle::watches_, path, true, std::move(then));
    return send(std::move(then), [&](zhandle_t* zh, const void* lent) {
        return zoo_awexists(zh, path.c_str(), &Handle::on_event, this, done_stat, lent);
    });
}

CallPtr Handle::sync(const std::string& path, Then then) {
    return send(std::move(then), [&](zhandle_t* zh, const void* lent) {
        return zoo_async(zh, path.c_str(), done_text, lent);
    });
}

CallPtr Handle::create_several(const std::string& path, std::string_view data, std::size_t count,
                               Then then) {
    // The library writes there when the answer comes: the server adds ten digits, and a sign.
    struct Made {
        std::vector<std::vector<char>> paths;
        std::vector<zoo_op_result_t> results;
    };
    auto made = std::make_shared<Made>();
    made->paths.assign(count, std::vector<char>(path.size() + 12));
    made->results.resize(count);
    Then all = [made, then = std::move(then)](Call& c) {
        if (c.rc == ZOK)
            for (const auto& text : made->paths)
                c.children.emplace_back(text.data());
        if (then) then(c);
    };
    return send(std::move(all), [&](zhandle_t* zh, const void* lent) {
        std::vector<zoo_op_t> ops(count);
        for (std::size_t i = 0; i < count; ++i)
            zoo_create_op_init(&ops[i], path.c_str(), data.data(), static_cast<int>(data.size()),
                               rights(shared_->options), ZOO_EPHEMERAL_SEQUENTIAL,
                               made->paths[i].data(), static_cast<int>(made->paths[i].size()));
        return zoo_amulti(zh, static_cast<int>(count), ops.data(), made->results.data(), done_void,
                          lent);
    });
}

CallPtr Handle::remove_all(const std::vector<std::string>& paths, Then then, int version) {
    return remove_several(paths, version, {}, {}, -1, std::move(then));
}

CallPtr Handle::remove_and_set(const std::vector<std::string>& paths, const std::string& set,
                               std::string data, int version, Then then) {
    return remove_several(paths, -1, set, std::move(data), version, std::move(then));
}

CallPtr Handle::remove_several(const std::vector<std::string>& paths, int first_version,
                               const std::string& set, std::string data, int version, Then then) {
    const std::size_t count = paths.size() + (set.empty() ? 0 : 1);
    auto results = std::make_shared<std::vector<zoo_op_result_t>>(count);
    Then all = [results, then = std::move(then)](Call& c) {
        if (then) then(c);
    };
    return send(std::move(all), [&](zhandle_t* zh, const void* lent) {
        std::vector<zoo_op_t> ops(count);
        for (std::size_t i = 0; i < paths.size(); ++i)
            zoo_delete_op_init(&ops[i], paths[i].c_str(), i == 0 ? first_version : -1);
        if (!set.empty())
            zoo_set_op_init(&ops.back(), set.c_str(), data.data(), static_cast<int>(data.size()),
                            version, nullptr);
        return zoo_amulti(zh, static_cast<int>(count), ops.data(), results->data(), done_void,
                          lent);
    });
}

CallPtr Handle::remove_with(const std::string& node, int node_version, const std::string& other,
                            std::optional<std::string> data, Then then, int version) {
    // The library writes the results there when the answer comes.
    auto results = std::make_shared<std::array<zoo_op_result_t, 2>>();
    Then both = [results, then = std::move(then)](Call& c) {
        if (then) then(c);
    };
    return send(std::move(both), [&](zhandle_t* zh, const void* lent) {
        std::array<zoo_op_t, 2> ops{};
        zoo_delete_op_init(&ops[0], node.c_str(), node_version);
        if (data)
            zoo_set_op_init(&ops[1], other.c_str(), data->data(), static_cast<int>(data->size()),
                            version, nullptr);
        else
            zoo_delete_op_init(&ops[1], other.c_str(), -1);
        return zoo_amulti(zh, 2, ops.data(), results->data(), done_void, lent);
    });
}

}  // namespace holdfast::zookeeper
