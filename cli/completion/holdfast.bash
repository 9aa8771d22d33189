# Bash completion for holdfast. What fits is said by `holdfast complete`, which for the names of held locks queries the
# server, for at most a second.

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

# Offers the arguments that continue the current word. Text from a server or a file is data: it is
# never expanded (as compgen -W would), and is inserted so that the shell reads it as one word.
_holdfast_offer() {
    local name quoted
    COMPREPLY=()
    for name in "${@%%$'\t'*}"; do  # without its description
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
    local words cur answer
    _holdfast_words
    cur="${words[-1]}"
    mapfile -t answer < <(printf '%s\0' "${words[@]:1}" | timeout 1 holdfast complete 2>/dev/null)
    case "$cur" in
        --*=*) cur="${cur#*=}" ;;
    esac
    case "${answer[0]}" in
        files)
            compopt -o filenames 2>/dev/null  # Bash quotes them, and adds a slash to a folder
            mapfile -t COMPREPLY < <(compgen -f -- "$cur")
            ;;
        'command '*)
            # The command that `run` starts completes as it always does.
            if declare -F _command_offset >/dev/null; then
                local i
                for ((i = 1; i < COMP_CWORD; i++)); do
                    [[ ${COMP_WORDS[i]} == -- ]] && break
                done
                _command_offset $((i + 1))
            else
                mapfile -t COMPREPLY < <(compgen -c -- "$cur")
            fi
            ;;
        words)
            _holdfast_offer "${answer[@]:1}"
            # Readline replaces only what follows the last ":" or "=".
            if [[ $cur == *[:=]* ]]; then
                local before="${cur%"${cur##*[:=]}"}"
                COMPREPLY=("${COMPREPLY[@]#"$before"}")
            fi
            ;;
    esac
}
complete -F _holdfast holdfast
