# Scripts in files of their own, compiled in as constants.

# holdfast_texts(TARGET HEADER NAMESPACE FILE...): writes HEADER, which the sources of TARGET include, with a constant
# for each section of the files. A section is what follows `-- name: NAME`, from that line's end to its own last one. Lines
# that begin with `---`, and what stands before the first section, are for the reader of the file only. A file that
# changes is read again by the next build.
function(holdfast_texts target header namespace)
    set(code "")
    foreach(file IN LISTS ARGN)
        set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
        file(READ ${file} text)
        string(REGEX REPLACE "\n---[^\n]*" "" text "\n${text}")
        string(FIND "${text}" "\n-- name: " begin)
        if(begin EQUAL -1)
            message(FATAL_ERROR "${file} has no line `-- name: NAME`")
        endif()
        string(SUBSTRING "${text}" ${begin} -1 text)
        string(REGEX REPLACE "\n*\n-- name: ([a-z_]+)\n+"
            "\n)text\";\ninline constexpr std::string_view \\1 = R\"text(\n" text "${text}")
        if(text MATCHES "\n-- name:[^\n]*")
            message(FATAL_ERROR "${file}: a name has small letters and _ only:${CMAKE_MATCH_0}")
        endif()
        string(REGEX REPLACE "^\n\\)text\";\n" "" text "${text}")
        string(REGEX REPLACE "\n+$" "" text "${text}")
        cmake_path(RELATIVE_PATH file BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE shown)
        string(APPEND code "\n// ${shown}\n${text}\n)text\";\n")
    endforeach()
    set(code "#pragma once\n#include <string_view>\n\nnamespace ${namespace} {\n${code}\n}  // namespace ${namespace}\n")
    set(folder ${CMAKE_CURRENT_BINARY_DIR}/generated)
    set(before "")
    if(EXISTS ${folder}/${header})
        file(READ ${folder}/${header} before)
    endif()
    if(NOT before STREQUAL code)  # else nothing is compiled again
        file(WRITE ${folder}/${header} "${code}")
    endif()
    target_include_directories(${target} PRIVATE ${folder})
endfunction()
