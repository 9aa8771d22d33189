// Messages of protobuf as text, without their definition.
#pragma once

#include <string>
#include <string_view>

namespace holdfast::lab {

/// "1: {1: "key"} 3: 7": each field by its number. Bytes that could be text are shown as such.
std::string protobuf_text(std::string_view message);

}  // namespace holdfast::lab
