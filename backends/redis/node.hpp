// The one header of this folder that another backend may include: backends/redlock, whose nodes are
// Redis servers. It gives the protocol as values, a connection of the engine's up to its first use
// (resolved, connected, secured, introduced), and errors. Nothing of the lock itself.
//
// The objects behind it are listed in node.cmake; a target that uses the header builds them in.
#pragma once
#include "protocol/keys.hpp"
#include "wire/checks.hpp"
#include "wire/codec.hpp"
#include "wire/errors.hpp"
#include "wire/handshake.hpp"
#include "wire/link.hpp"
#include "wire/script.hpp"
#include "wire/server_facts.hpp"
#include "wire/shared.hpp"
