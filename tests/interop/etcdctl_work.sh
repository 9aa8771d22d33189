#!/bin/sh
# What `etcdctl lock` runs while it holds, as in witness.py: CLIENT STORE-PORT FOLDER ENDPOINT. The witness names
# CLIENT, which lives as long as all of its side, and the key by which it holds. With a FIFO FOLDER/leave it stays
# until a line is written to that.
set -eu
client=$1 port=$2 folder=$3 endpoint=$4
witness=$folder/witness me="$client $ETCD_LOCK_KEY"
store() { redis-cli -p "$port" "$@"; }

# Makes the witness; otherwise prints who lives and has made it.
enter() {
    ln -sT "$me" "$witness" 2>/dev/null && return
    other=$(readlink "$witness") || other="0 who has just left"
    if kill -0 "${other%% *}" 2>/dev/null || ! rm "$witness" 2>/dev/null || ! ln -sT "$me" "$witness" 2>/dev/null; then
        echo "$other"
    fi
}

met=$(enter)
if [ -n "$met" ]; then
    store INCR overlaps
    store RPUSH met "$me & $met"
fi
n=$(store GET counter)
# One step of the store, so that a kill cannot fall between the two.
store EVAL "redis.call('SET','counter',ARGV[1]) redis.call('INCR','done') redis.call('INCR','foreign')" 0 $((${n:-0} + 1))
if [ -p "$folder/leave" ]; then read -r _ <"$folder/leave"; fi
# Nobody but the end of its lease deletes the key before this command ends: a key that is gone was no lock any more,
# and etcdctl should have ended this command before. Only of interest where somebody was met.
rm -f "$witness"
case $(store LRANGE met 0 -1) in
    *"$ETCD_LOCK_KEY"*)
        [ -n "$(etcdctl --endpoints "$endpoint" get --keys-only "$ETCD_LOCK_KEY")" ] ||
            store SADD outlived "$ETCD_LOCK_KEY"
        ;;
esac
