# Bash completion for holdfast: subcommands, options, backends of the configuration, and the names
# of locks that are held (asked of the server, for at most a second).

# What the global options so far say about the backend, for asking the server ourselves.
_holdfast_target() {
    local i
    for ((i = 1; i < COMP_CWORD; i++)); do
        case "${COMP_WORDS[i]}" in
            --) return ;;
            --local) printf '%s\n' --local ;;
            --backend | --config) printf '%s\n' "${COMP_WORDS[i]}" "${COMP_WORDS[i + 1]}" ;;
        esac
    done
}

_holdfast() {
    local cur prev words cword
    _init_completion -n : 2>/dev/null || {
        cur="${COMP_WORDS[COMP_CWORD]}"
        prev="${COMP_WORDS[COMP_CWORD - 1]}"
        words=("${COMP_WORDS[@]}")
        cword=$COMP_CWORD
    }
    local globals='--url --backend --local --config --quiet --verbose --color --json --help --version'
    local commands='run check inspect list break backends config schema demo'
    local command='' i
    for ((i = 1; i < cword; i++)); do
        case "${words[i]}" in
            --url | --backend | --config | --color) ((i++)) ;;
            --)
                # The command that `run` starts completes as it always does.
                if declare -F _command_offset >/dev/null; then
                    _command_offset $((i + 1))
                else
                    mapfile -t COMPREPLY < <(compgen -c -- "$cur")
                fi
                return
                ;;
            -*) ;;
            *) [[ -n $command ]] || command="${words[i]}" ;;
        esac
    done
    case "$prev" in
        --color) mapfile -t COMPREPLY < <(compgen -W 'auto always never' -- "$cur"); return ;;
        --config) mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
        --backend)
            mapfile -t COMPREPLY < <(compgen -W "$(timeout 1 holdfast config check 2>/dev/null |
                sed -n 's/^  \([^ ]*\) .*/\1/p')" -- "$cur")
            return
            ;;
        --url | --wait | --timeout | -w | --ttl | --min-hold | --max-hold | --grace | --label | -E | \
            --conflict-exit-code | --status-fd | --limit | --if-token | --seed) return ;;
    esac
    local options=''
    case "$command" in
        '') options="$commands" ;;
        run) options='-n --nonblock -w --wait -E --conflict-exit-code --ttl --min-hold --max-hold
            --grace --label --status-fd --' ;;
        list) options='--long --limit' ;;
        break) options='--if-token --now --force' ;;
        config) options='check show init' ;;
        schema) options='postgresql sqlite' ;;
        demo) options='--seed counter oversell queue takeover' ;;
    esac
    if [[ $cur == -* || -z $command || $command == config || $command == schema || $command == demo ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$options $globals" -- "$cur")
        return
    fi
    case "$command" in
        run | inspect | break | list)
            local target
            mapfile -t target < <(_holdfast_target)
            mapfile -t COMPREPLY < <(compgen -W \
                "$(timeout 1 holdfast "${target[@]}" list --limit 200 2>/dev/null)" -- "$cur")
            ;;
    esac
}
complete -F _holdfast holdfast
