# What every target of ours shares: the language, visibility, and warnings. Nothing here is
# global to a project that includes Holdfast by add_subdirectory.
include(GNUInstallDirs)

# What our static libraries link must be visible where they are linked: in other folders, too.
set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON)

if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Build type" FORCE)
endif()

# A build from scratch mostly reads headers, the same ones for each file, so g++ compiles many files as one, unless
# the tests are built as well: then somebody works on the code (docs/adr/0034).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT HOLDFAST_BUILD_TESTS AND NOT DEFINED CMAKE_UNITY_BUILD)
    set(CMAKE_UNITY_BUILD ON)
endif()
if(NOT DEFINED CMAKE_UNITY_BUILD_BATCH_SIZE)
    set(CMAKE_UNITY_BUILD_BATCH_SIZE 20)
endif()

# Linked PRIVATE by our own targets only; never exported.
add_library(holdfast_warnings INTERFACE)
target_compile_features(holdfast_warnings INTERFACE cxx_std_20)
target_compile_options(holdfast_warnings INTERFACE
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wold-style-cast)
if(HOLDFAST_WERROR)
    target_compile_options(holdfast_warnings INTERFACE -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # False alarms of g++ 12 about coroutine frames, whose memory Boost allocates in its own way.
    target_compile_options(holdfast_warnings INTERFACE -Wno-mismatched-new-delete)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_FLAGS MATCHES "-fsanitize")
    # False alarms of g++ 12 inside Boost when instrumented.
    target_compile_options(holdfast_warnings INTERFACE
        -Wno-maybe-uninitialized -Wno-stringop-overflow -Wno-error=tsan)
endif()
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Several files compiled as one (tests/run in CI): the compiler takes each of them for a header, and what is
    # private to one file for something that the next one shadows.
    target_compile_options(holdfast_warnings INTERFACE -Wno-subobject-linkage -Wshadow=local)
    # Up to a tenth of the time: the compiler looks for unused memory of its own only above half a gigabyte.
    target_compile_options(holdfast_warnings INTERFACE --param=ggc-min-heapsize=500000)
elseif(CMAKE_UNITY_BUILD)
    target_compile_options(holdfast_warnings INTERFACE -Wno-shadow)  # for the same reason
endif()

function(holdfast_target_defaults target)
    target_compile_features(${target} PUBLIC cxx_std_20)
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:holdfast_warnings>)
    set_target_properties(${target} PROPERTIES
        CXX_EXTENSIONS OFF CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
        POSITION_INDEPENDENT_CODE ON)
endfunction()

# A library that is installed: Holdfast::<component>.
function(holdfast_library target component)
    holdfast_target_defaults(${target})
    add_library(Holdfast::${component} ALIAS ${target})
    set_target_properties(${target} PROPERTIES
        DEFINE_SYMBOL ""  # static and shared objects are the same, so a compiler cache serves both
        EXPORT_NAME ${component} VERSION ${Holdfast_VERSION}
        SOVERSION ${Holdfast_VERSION_MAJOR}.${Holdfast_VERSION_MINOR})
endfunction()
