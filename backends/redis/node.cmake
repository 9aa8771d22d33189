# The objects behind node.hpp. backends/redlock builds them in as well, so that either backend can be
# left out, and a program that has both takes each object once.
set(holdfast_redis_node_sources)
foreach(source options protocol/keys wire/codec wire/errors wire/handshake wire/link wire/checks wire/script
        wire/server_facts)
    list(APPEND holdfast_redis_node_sources ${CMAKE_CURRENT_LIST_DIR}/${source}.cpp)
endforeach()
# Both archives have their objects, and a program takes one of each: they are no part of a larger one, or, in a unity
# build, all of them together are one.
if(CMAKE_UNITY_BUILD)
    set(text "")
    foreach(source IN LISTS holdfast_redis_node_sources)
        string(APPEND text "#include \"${source}\"\n")
    endforeach()
    set(together ${PROJECT_BINARY_DIR}/backends/redis_node.cpp)
    file(CONFIGURE OUTPUT ${together} CONTENT "${text}" @ONLY)
    set(holdfast_redis_node_files ${together})
else()
    set(holdfast_redis_node_files ${holdfast_redis_node_sources})
endif()
set_source_files_properties(${holdfast_redis_node_files} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
