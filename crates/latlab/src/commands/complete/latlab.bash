# Completions of latlab for bash. The program that is typed completes its own command line.

_latlab() {
    # bash splits words at the colons and equals signs of COMP_WORDBREAKS: lab:rt is three words.
    local words=() before="" glued=0 piece line i
    for ((i = 0; i <= COMP_CWORD; i++)); do
        piece=${COMP_WORDS[i]}
        if ((i > 0)) && [[ $piece =~ ^[:=]+$ ]]; then
            words[${#words[@]} - 1]+=$piece
            before=${words[${#words[@]} - 1]} glued=1
            continue
        fi
        ((i == COMP_CWORD)) && piece=$2
        if ((glued)); then
            words[${#words[@]} - 1]+=$piece
        else
            words+=("$piece") before=""
        fi
        glued=0
    done
    COMPREPLY=()
    while IFS= read -r line; do
        # Only names of files have no description; bash quotes them.
        [[ $line != *$'\t'* && -e $line ]] && compopt -o filenames 2>/dev/null
        line=${line%%$'\t'*}
        COMPREPLY+=("${line#"$before"}")
    done < <("${1/#\~\//$HOME/}" complete -- "${words[@]}" 2>/dev/null)
    # These are not the end of a word.
    [[ ${COMPREPLY[0]-} == *[=:,/] ]] && compopt -o nospace 2>/dev/null
    return 0
}

complete -o nosort -F _latlab latlab 2>/dev/null || complete -F _latlab latlab
