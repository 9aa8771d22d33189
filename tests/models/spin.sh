# shellcheck shell=sh disable=SC2034,SC2154
# Explores a model in all variants (sourced). Callers set $model, call check, and exit with $failed.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0 depth=400000

# check holds|fails NAME [spin's -D definitions]
check() {
    wanted=$1 name=$2
    shift 2
    mkdir "$work/$name"
    cd "$work/$name"
    spin -a "$@" "$model" >spin.txt
    # A search that fails soon ends; one that holds sees every state.
    case $wanted in fails) level=-O0 ;; *) level=-O2 ;; esac
    cc -w $level -DSAFETY -DCOLLAPSE -o pan pan.c
    ./pan -m$depth -w22 >out.txt 2>&1 || true
    states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' out.txt)
    case $(cat out.txt) in
    *"assertion violated"*) got=fails ;;
    *"errors: 0"*"states, stored"*) got=holds ;;
    *) got="was not searched whole" ;;
    esac
    case $(cat out.txt) in *"out of memory"* | *"max search depth too small"*) got="was not searched whole" ;; esac
    echo "$name: $got, $states states"
    if [ "$got" != "$wanted" ]; then
        echo "$name: wanted: $wanted"
        tail -20 out.txt
        failed=1
    fi
    cd /
}
