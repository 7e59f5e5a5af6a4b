#compdef latlab
# Completions of latlab for zsh. The program that is typed completes its own command line.

_latlab() {
    local line value entry
    local -a ended unfinished
    for line in "${(@f)$(${~${(Q)words[1]}} complete -- "${(@Q)words[1,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}"; do
        [[ -n $line ]] || continue
        value=${line%%$'\t'*}
        entry=${value//:/\\:}
        [[ $line == *$'\t'?* ]] && entry+=:${line#*$'\t'}
        # These are not the end of a word.
        if [[ $value == *[=:,/] ]]; then unfinished+=("$entry"); else ended+=("$entry"); fi
    done
    (( $#ended )) && _describe -V latlab ended
    (( $#unfinished )) && _describe -V latlab unfinished -S ''
}

if [[ ${funcstack[1]} == _latlab ]]; then _latlab "$@"; else compdef _latlab latlab; fi
