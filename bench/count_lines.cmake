# Counts the lines of each backend that are neither empty nor a comment, into a header: in script mode,
# with BACKENDS (their folders, a list with commas) and OUTPUT.
set(entries "")
string(REPLACE "," ";" BACKENDS "${BACKENDS}")
foreach(backend IN LISTS BACKENDS)
    file(GLOB_RECURSE files ${backend}/*.cpp ${backend}/*.hpp)
    # A family: each of it is built on all that they have alike.
    file(GLOB shared ${backend}/../common/*.cpp ${backend}/../common/*.hpp)
    list(APPEND files ${shared})
    file(READ ${backend}/CMakeLists.txt built)
    if(built MATCHES "holdfast_resp")
        file(GLOB shared ${backend}/../resp/*.cpp ${backend}/../resp/*.hpp)
        list(APPEND files ${shared})
    endif()
    set(lines 0)
    foreach(file IN LISTS files)
        file(READ ${file} text)
        string(REGEX REPLACE "[][;]" "x" text "\n${text}")  # they mean something in lists
        string(REGEX MATCHALL "\n[ \t]*[^ \t\n/]" found "${text}")
        list(LENGTH found count)
        math(EXPR lines "${lines} + ${count}")
    endforeach()
    list(LENGTH files count)
    get_filename_component(name ${backend} NAME)
    string(APPEND entries "    {\"${name}\", ${lines}, ${count}},\n")
endforeach()
file(WRITE ${OUTPUT} "#pragma once\n\nstruct CodeSize {\n    const char* backend;\n    int lines, files;\n};\n
inline constexpr CodeSize code_sizes[] = {\n${entries}};\n")
