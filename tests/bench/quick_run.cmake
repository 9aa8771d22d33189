# A quick run of the whole bench on real servers: no guarantee violated, nothing missing, and a report
# that follows from its rows, in the JSON file and inside the page.
set(json ${FOLDER}/quick.json)
set(html ${FOLDER}/quick.html)
file(REMOVE ${json} ${html})
execute_process(COMMAND ${BENCH} --quick --seed 1 --json ${json} --html ${html} RESULT_VARIABLE code)
if(NOT code EQUAL 0)
    message(FATAL_ERROR "holdfast-bench --quick ended with ${code}")
endif()
execute_process(COMMAND ${CHECKER} ${json} ${html} RESULT_VARIABLE wrong)
if(NOT wrong EQUAL 0)
    message(FATAL_ERROR "the report does not follow from its rows")
endif()
