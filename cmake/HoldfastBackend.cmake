# Backends: AUTO builds one when its client library is found, ON insists, OFF leaves it out.

# The schemes and names of the backend in this folder, as its Descriptor has them (d.schemes = {"redis", ...},
# d.name = "redis"): core names the target to link for those that a program lacks.
function(holdfast_backend_schemes name)
    file(GLOB sources CONFIGURE_DEPENDS *.cpp)
    set(found OFF)
    foreach(source IN LISTS sources)
        file(READ ${source} text)
        # A library may have several descriptors.
        string(REGEX MATCHALL "\\.schemes = {[^}]*}" lines "${text}")
        if(lines)
            set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
            string(REGEX MATCHALL "\"[a-z][a-z0-9+.-]*" schemes "${lines}")
            list(TRANSFORM schemes REPLACE "^\"" "")
            string(REGEX MATCHALL "d\\.name = \"[a-z][a-z0-9-]*" types "${text}")
            list(TRANSFORM types REPLACE "^.*\"" "")
            list(REMOVE_ITEM types ${schemes})
            set(what true)
            foreach(words schemes types)
                foreach(word IN LISTS ${words})
                    set_property(GLOBAL APPEND_STRING PROPERTY HOLDFAST_KNOWN_SCHEMES
                        "    Known{\"${word}\", \"Holdfast::${name}\", ${what}},\n")
                endforeach()
                set(what false)
            endforeach()
            set(found ON)
        endif()
    endforeach()
    if(NOT found)
        message(FATAL_ERROR "No source in ${CMAKE_CURRENT_SOURCE_DIR} says\n"
            "  d.schemes = {...}\n"
            "of the ${name} backend's Descriptor; core derives its list of schemes from that line.")
    endif()
endfunction()

# holdfast_known_schemes(): writes what the above has found, for core. After all backends.
function(holdfast_known_schemes)
    get_property(known GLOBAL PROPERTY HOLDFAST_KNOWN_SCHEMES)
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/core/generated/known_schemes.inc
        CONTENT "${known}" @ONLY)
endfunction()

# holdfast_backend_option(NAME FOUND WHAT PACKAGE RESULT): decides whether to build; one line says why not.
function(holdfast_backend_option name found what package result)
    string(TOUPPER ${name} upper)
    holdfast_backend_schemes(${name})
    set_property(GLOBAL PROPERTY HOLDFAST_${name}_WHAT "${what}")
    set_property(GLOBAL PROPERTY HOLDFAST_${name}_PACKAGE "${package}")
    set_property(GLOBAL APPEND PROPERTY HOLDFAST_BACKEND_FOLDERS "${CMAKE_CURRENT_SOURCE_DIR}")
    set(HOLDFAST_BACKEND_${upper} AUTO CACHE STRING "Build the ${name} backend: AUTO, ON or OFF")
    set_property(CACHE HOLDFAST_BACKEND_${upper} PROPERTY STRINGS AUTO ON OFF)
    set(wanted "${HOLDFAST_BACKEND_${upper}}")
    set(build OFF)
    if(wanted STREQUAL "AUTO")
        set(build ${found})
        if(NOT found)
            message(STATUS "Holdfast: the ${name} backend is left out: ${what} was not found"
                           " (Debian: apt install ${package})")
        endif()
    elseif(wanted)
        if(NOT found)
            message(FATAL_ERROR "HOLDFAST_BACKEND_${upper}=${wanted}, but ${what} was not found.\n"
                "  Debian: apt install ${package}\n"
                "  or configure with -DHOLDFAST_BACKEND_${upper}=OFF")
        endif()
        set(build ON)
    endif()
    if(build)
        set_property(GLOBAL APPEND PROPERTY HOLDFAST_BACKENDS ${name})
    else()
        set_property(GLOBAL APPEND PROPERTY HOLDFAST_BACKENDS_OUT ${name})
    endif()
    set(${result} ${build} PARENT_SCOPE)
endfunction()

# holdfast_backend(NAME SOURCES...): the library Holdfast::NAME. Whoever links it gets its registration:
# the object that defines the symbol below registers the backend.
function(holdfast_backend name)
    add_library(holdfast_${name} ${ARGN})
    holdfast_library(holdfast_${name} ${name})
    set_target_properties(holdfast_${name} PROPERTIES OUTPUT_NAME holdfast-${name})
    target_link_libraries(holdfast_${name} PUBLIC holdfast_core)
    get_target_property(type holdfast_${name} TYPE)
    if(type STREQUAL "SHARED_LIBRARY")
        # No object of the program refers to the library, so --as-needed, which some toolchains have as
        # their default, would drop it. TARGET_NAME lets the installed package name its own target.
        target_link_options(holdfast_${name} INTERFACE
            "LINKER:--push-state,--no-as-needed,$<TARGET_FILE:$<TARGET_NAME:holdfast_${name}>>,--pop-state")
    else()
        target_link_options(holdfast_${name} INTERFACE "LINKER:--undefined=holdfast_backend_${name}")
    endif()
endfunction()

# holdfast_backend_needs(NAME FILE PC...): what users of a *static* Holdfast::NAME have to find. FILE is a
# CMake file that looks for it and sets holdfast_NAME_dependencies_found; the backend's CMakeLists.txt
# includes the same file, and it is installed. PC are the names of the .pc files.
function(holdfast_backend_needs name file)
    set_property(GLOBAL PROPERTY HOLDFAST_${name}_DEPENDENCIES "${CMAKE_CURRENT_SOURCE_DIR}/${file}")
    set_property(GLOBAL PROPERTY HOLDFAST_${name}_PC ${ARGN})
endfunction()

function(holdfast_summary)
    get_property(in GLOBAL PROPERTY HOLDFAST_BACKENDS)
    list(JOIN in " " in)
    get_property(out GLOBAL PROPERTY HOLDFAST_BACKENDS_OUT)
    list(JOIN out " " out)
    if(out)
        set(out "; left out: ${out}")
    endif()
    message(STATUS "Holdfast ${Holdfast_VERSION}: backends: ${in}${out}")
endfunction()
