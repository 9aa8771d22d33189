# Which suites this build has: all of them, unless HOLDFAST_TESTS_SPLIT divides them between two builds, as
# tests/run --split does. A sanitized build then has the suites of the library, where a wrong access would be: core,
# conformance, backends, examine. A plain one has the rest: the command, bench, simulation, other clients, packages,
# pages. It also has the files with [fork] cases: in a forked child a sanitizer's allocator may wait for ever for what a
# thread of the parent held, and ThreadSanitizer does not follow threads that such a child starts.
option(HOLDFAST_TESTS_SPLIT "Build only the suites that tests/run --split has in this kind of build" OFF)
option(HOLDFAST_TESTS_OF_TREE "Build the tests of pages and sources, which say the same on every platform" ON)
set(HOLDFAST_SANITIZED OFF)
if(CMAKE_CXX_FLAGS MATCHES "-fsanitize")
    set(HOLDFAST_SANITIZED ON)
endif()
set(HOLDFAST_TESTS_OF_LIBRARY ON)
set(HOLDFAST_TESTS_OF_REST ON)
if(HOLDFAST_TESTS_SPLIT AND HOLDFAST_SANITIZED)
    set(HOLDFAST_TESTS_OF_REST OFF)
    # A fifth of the time to compile, for null pointers, at which AddressSanitizer stops as well, and for alignment.
    add_compile_options(-fno-sanitize=null,alignment)
elseif(HOLDFAST_TESTS_SPLIT)
    set(HOLDFAST_TESTS_OF_LIBRARY OFF)
endif()

if(CMAKE_CROSSCOMPILING)
    set(HOLDFAST_TESTS_OF_REST OFF)  # an emulator runs one program, not those that it starts
endif()

# holdfast_fork_files(LIST): leaves in LIST what has [fork] cases, where the library's suites are not built.
function(holdfast_fork_files list)
    if(NOT HOLDFAST_TESTS_OF_LIBRARY)
        set(kept "")
        foreach(file IN LISTS ${list})
            file(STRINGS ${file} found REGEX "\\[fork\\]" LIMIT_COUNT 1)
            if(found)
                list(APPEND kept ${file})
            endif()
        endforeach()
        set(${list} ${kept} PARENT_SCOPE)
    endif()
endfunction()
