# Brings the packages into TARGET (a build folder), unless they are there already. The lock file names
# versions and checksums and no registry: npm's own configuration says where they come from.
file(READ ${SOURCE}/package-lock.json wanted)
if(EXISTS ${TARGET}/installed.json)
    file(READ ${TARGET}/installed.json have)
    if(have STREQUAL wanted)
        return()
    endif()
endif()
file(COPY ${SOURCE}/package.json ${SOURCE}/package-lock.json DESTINATION ${TARGET})
execute_process(COMMAND npm ci --ignore-scripts --no-audit --no-fund WORKING_DIRECTORY ${TARGET}
    RESULT_VARIABLE status)
if(NOT status EQUAL 0)
    message(FATAL_ERROR "npm could not bring the libraries to contend with: is a registry reachable?")
endif()
file(WRITE ${TARGET}/installed.json "${wanted}")
