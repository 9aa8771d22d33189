# What the sqlite backend is built on; installed for those who link it statically.
find_package(SQLite3 QUIET)
set(holdfast_sqlite_dependencies_found ${SQLite3_FOUND})
