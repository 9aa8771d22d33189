// The one header of this folder that another backend may include: backends/redlock, whose nodes are
// Redis servers. It gives the protocol as values, a connection of the engine's up to its first use
// (resolved, connected, secured, introduced), and errors. Nothing of the lock itself.
//
// The objects behind it are listed in node.cmake; who uses the header builds them in.
#pragma once
#include "codec.hpp"
#include "errors.hpp"
#include "handshake.hpp"
#include "keys.hpp"
#include "link.hpp"
#include "script.hpp"
#include "shared.hpp"
