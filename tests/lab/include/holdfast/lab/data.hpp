// What becomes of a server's data when it is started again.
#pragma once

namespace holdfast::lab {

/// What a restarted server finds.
enum class Data {
    keep,   ///< what it had: a running server saves first, a killed one is taken as it is
    fresh,  ///< nothing
};

}  // namespace holdfast::lab
