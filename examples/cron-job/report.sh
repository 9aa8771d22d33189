#!/bin/sh
# report.sh FOLDER: the work itself, under the lock.
set -eu
cd "$1"
case ${HOLDFAST_PREVIOUS:-none} in
    crashed | abandoned) rm -f report.new ;; # the run before did not finish
esac
echo "report of $(date +%F), token $HOLDFAST_TOKEN" >report.new
# Whole or not at all: a run that is stopped in between leaves the old report.
mv report.new report
echo "report written"
