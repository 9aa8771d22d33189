// The only header of this folder for another backend: backends/redlock, whose nodes are Redis
// servers. It offers the protocol as values, an engine connection up to its first use (resolved,
// connected, secured, greeted), and errors; of the lock itself only what the marks of waiters
// share.
//
// node.cmake lists the object files behind it, which a target that uses the header builds in.
#pragma once
#include "protocol/keys.hpp"
#include "protocol/poll_mark.hpp"
#include "wire/checks.hpp"
#include "wire/codec.hpp"
#include "wire/errors.hpp"
#include "wire/handshake.hpp"
#include "wire/link.hpp"
#include "wire/script.hpp"
#include "wire/server_facts.hpp"
#include "wire/shared.hpp"
