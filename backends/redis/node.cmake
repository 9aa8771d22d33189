# The objects behind node.hpp. backends/redlock builds them in as well, so that either backend can be
# left out, and a program that has both takes each object once.
set(holdfast_redis_node_sources)
foreach(source codec errors handshake keys link options script)
    list(APPEND holdfast_redis_node_sources ${CMAKE_CURRENT_LIST_DIR}/${source}.cpp)
endforeach()
