# The objects behind node.hpp. backends/redlock builds them in as well, so that either backend can be
# left out, and a program that has both takes each object once.
set(holdfast_redis_node_sources)
foreach(source options protocol/keys wire/codec wire/errors wire/handshake wire/link wire/checks wire/script
        wire/server_facts)
    list(APPEND holdfast_redis_node_sources ${CMAKE_CURRENT_LIST_DIR}/${source}.cpp)
endforeach()
# Both archives have their objects, and a program takes one of each: they are no part of a larger one.
set_source_files_properties(${holdfast_redis_node_sources} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
