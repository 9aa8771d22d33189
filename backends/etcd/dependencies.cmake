# What the etcd backend is built on; installed for those who link it statically.
find_package(Boost 1.81 CONFIG QUIET COMPONENTS json)
find_package(OpenSSL QUIET)
set(holdfast_etcd_dependencies_found OFF)
if(TARGET Boost::json AND OpenSSL_FOUND)
    set(holdfast_etcd_dependencies_found ON)
endif()
