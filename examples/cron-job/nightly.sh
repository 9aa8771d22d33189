#!/bin/sh
# What cron starts on every machine: one of them writes the report, the others leave it to that one.
# With HOLDFAST_URL (or holdfast.toml) it is one among all machines, else one on this machine.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
where=
[ -n "${HOLDFAST_URL:-}" ] || where=--local
# -q -n -E 0: when another machine has the lock, that is a success and no mail. --min-hold: the clocks of the
# machines differ by less than this, so a machine whose clock is late finds the lock still held.
# shellcheck disable=SC2086
exec holdfast -q $where run -n -E 0 --min-hold "${MIN_HOLD:-1m}" --label "$(hostname)" \
    nightly-report -- "$here/report.sh" "${REPORT_DIR:-/var/lib/report}"
