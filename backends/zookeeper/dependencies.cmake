# What the zookeeper backend is built on; installed for those who link it statically. The client has
# neither a .pc file nor a CMake package.
find_path(ZOOKEEPER_INCLUDE_DIR zookeeper/zookeeper.h)
find_library(ZOOKEEPER_ST_LIBRARY zookeeper_st)
mark_as_advanced(ZOOKEEPER_INCLUDE_DIR ZOOKEEPER_ST_LIBRARY)
set(holdfast_zookeeper_dependencies_found OFF)
if(ZOOKEEPER_INCLUDE_DIR AND ZOOKEEPER_ST_LIBRARY)
    set(holdfast_zookeeper_dependencies_found ON)
    if(NOT TARGET ZooKeeper::st)
        add_library(ZooKeeper::st UNKNOWN IMPORTED GLOBAL)
        set_target_properties(ZooKeeper::st PROPERTIES
            IMPORTED_LOCATION "${ZOOKEEPER_ST_LIBRARY}"
            INTERFACE_INCLUDE_DIRECTORIES "${ZOOKEEPER_INCLUDE_DIR}")
    endif()
endif()
