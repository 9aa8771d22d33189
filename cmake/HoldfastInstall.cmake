# Install tree: the libraries, a CMake package with one component per backend, and one .pc file each.
# A backend that is added as a folder is installed and found without a change here.
include(CMakePackageConfigHelpers)

set(holdfast_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Holdfast)
get_property(holdfast_backends GLOBAL PROPERTY HOLDFAST_BACKENDS)
get_target_property(holdfast_core_type holdfast_core TYPE)
if(holdfast_core_type STREQUAL "STATIC_LIBRARY")
    set(holdfast_static ON)
else()
    set(holdfast_static OFF)
endif()

# One EXPORT set per component, so that a component's targets are defined only when it is asked for.
function(holdfast_install_component target component)
    set_target_properties(${target} PROPERTIES INSTALL_RPATH "$ORIGIN")
    install(TARGETS ${target} EXPORT Holdfast-${component}
            RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
            LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
            ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
            ${ARGN})
    install(EXPORT Holdfast-${component} NAMESPACE Holdfast::
            FILE HoldfastTargets-${component}.cmake DESTINATION ${holdfast_package_dir})
endfunction()

holdfast_install_component(holdfast_core core FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
foreach(backend IN LISTS holdfast_backends)
    holdfast_install_component(holdfast_${backend} ${backend})
endforeach()
if(HOLDFAST_BUILD_C)
    holdfast_install_component(holdfast_c c FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
endif()
install(TARGETS holdfast_all EXPORT Holdfast-all)
install(EXPORT Holdfast-all NAMESPACE Holdfast::
        FILE HoldfastTargets-all.cmake DESTINATION ${holdfast_package_dir})

# Only who links a static library has to find what it was built on.
set(holdfast_needs "")
foreach(backend IN LISTS holdfast_backends)
    get_property(file GLOBAL PROPERTY HOLDFAST_${backend}_DEPENDENCIES)
    get_property(what GLOBAL PROPERTY HOLDFAST_${backend}_WHAT)
    get_property(package GLOBAL PROPERTY HOLDFAST_${backend}_PACKAGE)
    if(holdfast_static AND file)
        install(FILES ${file} DESTINATION ${holdfast_package_dir}
                RENAME HoldfastDependencies-${backend}.cmake)
        string(APPEND holdfast_needs
            "set(_holdfast_${backend}_what \"${what}\")\n"
            "set(_holdfast_${backend}_package \"${package}\")\n")
    endif()
endforeach()

configure_package_config_file(
    ${CMAKE_CURRENT_LIST_DIR}/HoldfastConfig.cmake.in ${PROJECT_BINARY_DIR}/HoldfastConfig.cmake
    INSTALL_DESTINATION ${holdfast_package_dir} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/HoldfastConfigVersion.cmake
    COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/HoldfastConfig.cmake
              ${PROJECT_BINARY_DIR}/HoldfastConfigVersion.cmake
        DESTINATION ${holdfast_package_dir})

# pkg-config. The paths follow the .pc file, so that the tree can be moved.
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}" OR IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}")
    set(pc_prefix "${CMAKE_INSTALL_PREFIX}")
    set(pc_libdir "${CMAKE_INSTALL_FULL_LIBDIR}")
    set(pc_includedir "${CMAKE_INSTALL_FULL_INCLUDEDIR}")
else()
    file(RELATIVE_PATH up "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
    string(REGEX REPLACE "/$" "" up "${up}")
    set(pc_prefix "\${pcfiledir}/${up}")
    set(pc_libdir "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
    set(pc_includedir "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
endif()

# holdfast_pc(FILE DESCRIPTION LIBS REQUIRES)
function(holdfast_pc pc_name pc_description pc_libs pc_requires)
    configure_file(${CMAKE_CURRENT_FUNCTION_LIST_DIR}/holdfast.pc.in
                   ${PROJECT_BINARY_DIR}/${pc_name}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/${pc_name}.pc
            DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()

# A static-only tree names its private libraries as public ones: plain `pkg-config --libs` then works
# there as it does with shared libraries, which need none of them from their users.
set(pc_private "")
if(holdfast_static)
    set(pc_private " -lboost_url")
endif()
holdfast_pc(holdfast "${PROJECT_DESCRIPTION}" "-lholdfast${pc_private}" "")
set(pc_every "")
foreach(backend IN LISTS holdfast_backends)
    set(requires "holdfast = ${PROJECT_VERSION}")
    get_property(pc GLOBAL PROPERTY HOLDFAST_${backend}_PC)
    if(holdfast_static AND pc)
        list(JOIN pc ", " pc)
        string(APPEND requires ", ${pc}")
    endif()
    # As in holdfast_backend(): the backend must stay in the link. One word for the shared library, since
    # pkg-config may take repeated words apart.
    if(holdfast_static)
        set(libs "-Wl,--undefined=holdfast_backend_${backend} -lholdfast-${backend}")
        get_property(pc_libs GLOBAL PROPERTY HOLDFAST_${backend}_PC_LIBS)
        if(pc_libs)
            string(APPEND libs " ${pc_libs}")
        endif()
    else()
        set(libs "-Wl,--push-state,--no-as-needed,-lholdfast-${backend},--pop-state")
    endif()
    holdfast_pc(holdfast-${backend} "The ${backend} backend of Holdfast" "${libs}" "${requires}")
    list(APPEND pc_every "holdfast-${backend} = ${PROJECT_VERSION}")
endforeach()
if(HOLDFAST_BUILD_C)
    holdfast_pc(holdfast-c "The C interface of Holdfast" "-lholdfast-c" "")
endif()
list(JOIN pc_every ", " pc_every)
configure_file(${CMAKE_CURRENT_LIST_DIR}/holdfast-all.pc.in ${PROJECT_BINARY_DIR}/holdfast-all.pc
               @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/holdfast-all.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/CHANGELOG.md
        DESTINATION ${CMAKE_INSTALL_DOCDIR})
