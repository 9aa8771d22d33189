# Bash completion for holdfast: subcommands, options, backends of the configuration, and the names
# of held locks, for which it queries the server for at most a second.

# Sets `words` to the words up to the cursor, put together again where readline divides them: at "=" and
# at ":", as in --url=redis://host:6379.
_holdfast_words() {
    local i word joined=''
    words=()
    for ((i = 0; i <= COMP_CWORD; i++)); do
        word="${COMP_WORDS[i]}"
        # An empty word after a blank is a new one.
        [[ -z $word && ${COMP_LINE:COMP_POINT-1:1} == [[:blank:]] ]] && joined=''
        if ((i > 1)) && [[ -n $joined || $word == [=:]* ]]; then
            words[-1]+="$word"
        else
            words+=("$word")
        fi
        [[ $word == *[=:] ]] && joined=yes || joined=''
    done
}

# The global options among `words` that choose the backend, for that query.
_holdfast_target() {
    local i
    for ((i = 1; i < ${#words[@]} - 1; i++)); do
        case "${words[i]}" in
            --) return ;;
            --local | --url=* | --backend=* | --config=*) printf '%s\n' "${words[i]}" ;;
            --url | --backend | --config) printf '%s\n' "${words[i]}" "${words[i + 1]}"; ((i++)) ;;
        esac
    done
}

# Offers the arguments that continue the current word. Text from a server or a file is data: it is
# never expanded (as compgen -W would), and is inserted so that the shell reads it as one word.
_holdfast_offer() {
    local name quoted
    COMPREPLY=()
    for name in "$@"; do
        case "$name" in
            '' | *\\*) continue ;; # shown escaped: not the name itself
        esac
        printf -v quoted %q "$name"
        case "$cur" in
            [\'\"]*)
                # Inside the user's own quotes nothing can be quoted again.
                [[ $quoted == "$name" && $name == "${cur:1}"* ]] && COMPREPLY+=("$name") ;;
            *)
                [[ $quoted == "$cur"* || $name == "$cur"* ]] && COMPREPLY+=("$quoted") ;;
        esac
    done
}

_holdfast() {
    local words cur prev cword
    _holdfast_words
    cword=$((${#words[@]} - 1))
    cur="${words[cword]}" prev="${words[cword - 1]}"
    case "$cur" in
        --*=*) prev="${cur%%=*}" cur="${cur#*=}" ;;
    esac
    local globals='--url --backend --local --config --quiet --verbose --color --json --help --version'
    local commands='run elect check inspect leader list ask break backends doctor config schema demo'
    local command='' i
    for ((i = 1; i < cword; i++)); do
        case "${words[i]}" in
            --url | --backend | --config | --color) ((i++)) ;;
            --)
                # The command that `run` starts completes as it always does.
                if declare -F _command_offset >/dev/null; then
                    for ((i = 1; i < COMP_CWORD; i++)); do
                        [[ ${COMP_WORDS[i]} == -- ]] && break
                    done
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
        --config | --metrics) mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
        --backend)
            local backends
            mapfile -t backends < <(timeout 1 holdfast config check 2>/dev/null |
                sed -n 's/^  \([^ ]*\) .*/\1/p')
            _holdfast_offer "${backends[@]}"
            return
            ;;
        --url | --wait | --timeout | -w | --ttl | --min-hold | --max-hold | --grace | --label | -E | \
            --conflict-exit-code | --status-fd | --limit | --if-token | --owner | --value | --permits | --of | --seed | --accept) return ;;
        --on-ask) mapfile -t COMPREPLY < <(compgen -A signal -- "SIG${cur#SIG}"); return ;;
    esac
    local options=''
    case "$command" in
        '') options="$commands" ;;
        run) options='-n --nonblock -w --wait -E --conflict-exit-code --ttl --min-hold --max-hold
            --grace --label --status-fd --metrics -s --shared --permits --of --on-ask --' ;;
        elect) options='-n --nonblock -w --wait -E --conflict-exit-code --ttl --max-hold --grace
            --value --status-fd --metrics --on-ask --' ;;
        inspect | leader) options='--watch' ;;
        ask) options='--owner --if-token' ;;
        list) options='--long --limit' ;;
        break) options='--owner --if-token --note --now --force' ;;
        doctor) options='--accept' ;;
        config) options='check show init' ;;
        schema) options=$(timeout 1 holdfast schema 2>/dev/null) ;;
        demo) options='--seed counter oversell queue takeover' ;;
    esac
    if [[ $cur == -* || -z $command || $command == config || $command == schema || $command == demo ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$options $globals" -- "$cur")
        return
    fi
    case "$command" in
        run | elect | inspect | leader | ask | break | list)
            local target names
            mapfile -t target < <(_holdfast_target)
            mapfile -t names < <(timeout 1 holdfast "${target[@]}" list --limit 200 2>/dev/null)
            _holdfast_offer "${names[@]}"
            # Readline replaces only what follows the last ":" or "=".
            if [[ $cur == *[:=]* ]]; then
                local before="${cur%"${cur##*[:=]}"}"
                COMPREPLY=("${COMPREPLY[@]#"$before"}")
            fi
            ;;
    esac
}
complete -F _holdfast holdfast
