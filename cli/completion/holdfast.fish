# Fish completion for holdfast. What fits is said by `holdfast complete`, which for the names of held locks queries the
# server, for at most a second.
function __holdfast_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l answer (printf '%s\0' $words[2..] "$current" | timeout 1 holdfast complete 2>/dev/null)
    # A candidate has the whole word: with --config=FILE, this too.
    set -l before (string match -r -- '^--[^=]*=' "$current")
    switch "$answer[1]"
        case files
            string replace -r -- '^' "$before" (__fish_complete_path (string replace -- "$before" '' "$current"))
        case 'command *'
            # The command that `run` starts completes as it always does.
            set -l from (math (string replace 'command ' '' "$answer[1]") + 2)
            complete -C (string join ' ' -- (string escape -- $words[$from..]) "$current")
        case words
            string replace -r -- '^' "$before" $answer[2..]
    end
end
complete -c holdfast -f -a '(__holdfast_complete)'
