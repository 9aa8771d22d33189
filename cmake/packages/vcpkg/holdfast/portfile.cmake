# vcpkg's port, as an overlay: it builds the checkout that it stands in. docs/install.md says how to use it.
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../../.." ABSOLUTE)

# The features are the backends whose backend.json says what vcpkg calls their client libraries.
set(backends "")
set(left_out "")
file(GLOB facts "${SOURCE_PATH}/backends/*/backend.json" "${SOURCE_PATH}/backends/sql/*/backend.json")
foreach(file IN LISTS facts)
    cmake_path(GET file PARENT_PATH name)
    cmake_path(GET name FILENAME name)
    string(TOUPPER ${name} upper)
    file(READ "${file}" text)
    string(JSON ports ERROR_VARIABLE none GET "${text}" package vcpkg)
    if(NOT none)
        list(APPEND backends ${name} HOLDFAST_BACKEND_${upper})
    elseif(NOT name STREQUAL "memory")
        list(APPEND left_out -DHOLDFAST_BACKEND_${upper}=OFF)
    endif()
endforeach()
vcpkg_check_features(OUT_FEATURE_OPTIONS FEATURE_OPTIONS FEATURES ${backends} tools HOLDFAST_BUILD_CLI)
vcpkg_find_acquire_program(PKGCONFIG)
set(protoc "")
if("etcd" IN_LIST FEATURES)
    set(protoc "-DHOLDFAST_PROTOC=${CURRENT_HOST_INSTALLED_DIR}/tools/protobuf/protoc${VCPKG_HOST_EXECUTABLE_SUFFIX}")
endif()

# The C library is always a shared one with everything inside, which no static triplet allows.
vcpkg_cmake_configure(
    SOURCE_PATH "${SOURCE_PATH}"
    OPTIONS
        ${FEATURE_OPTIONS}
        ${protoc}
        "-DPKG_CONFIG_EXECUTABLE=${PKGCONFIG}"
        ${left_out}
        -DHOLDFAST_BUILD_C=OFF
)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/Holdfast)
vcpkg_fixup_pkgconfig()
if("tools" IN_LIST FEATURES)
    vcpkg_copy_tools(TOOL_NAMES holdfast AUTO_CLEAN)
endif()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
