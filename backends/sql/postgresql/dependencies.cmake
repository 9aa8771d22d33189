# What the postgresql backend is built on; installed for those who link it statically.
find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
    pkg_check_modules(PQXX QUIET IMPORTED_TARGET libpqxx libpq)
endif()
set(holdfast_postgresql_dependencies_found OFF)
if(TARGET PkgConfig::PQXX)
    set(holdfast_postgresql_dependencies_found ON)
endif()
