// A holder or waiter, as its owner id describes it.
#pragma once
#include <string>
#include <string_view>

#include "holdfast/client.hpp"
#include "holdfast/spi/backend.hpp"
#include "holdfast/spi/owner.hpp"

namespace holdfast::spi {

/// With what any owner id says: host, process, note, and whether it is one of Holdfast's.
inline Holder holder_of(std::string_view owner) {
    Owner of = parse_owner(owner);
    Holder h;
    h.owner = owner;
    h.host = std::move(of.host);
    h.pid = of.pid;
    h.note = std::move(of.note);
    h.foreign = !of.ours;
    return h;
}

/// Whether a filter means the holder with this owner and token.
inline bool is_meant(const HolderFilter& which, std::string_view owner, FencingToken token) {
    return (!which.if_token || *which.if_token == token) && (!which.owner || *which.owner == owner);
}

/// The text for not_supported when a client of another library holds the name, which hears of no
/// request and no break. `what`: what it holds by at the server, a key or a node.
inline std::string foreign_holder(Tell tell, std::string_view what) {
    const std::string text = "a client of another library holds it and would not ";
    if (tell == Tell::asked) return text + "hear";
    return text + "notice the revocation; to delete its " + std::string(what) +
           ", break it with --now";
}

}  // namespace holdfast::spi
