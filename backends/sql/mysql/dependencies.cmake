# What the mysql backend is built on; installed for those who link it statically.
find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
    pkg_check_modules(MARIADB QUIET IMPORTED_TARGET libmariadb)
endif()
set(holdfast_mysql_dependencies_found OFF)
if(TARGET PkgConfig::MARIADB)
    set(holdfast_mysql_dependencies_found ON)
endif()
