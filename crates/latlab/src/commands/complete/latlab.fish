# Completions of latlab for fish. The program that is typed completes its own command line.

function __latlab_complete
    set --local words (commandline --current-process --tokenize --cut-at-cursor)
    set --local program (string replace --regex '^~/' "$HOME/" -- $words[1])
    $program complete -- $words (commandline --current-token --cut-at-cursor) 2>/dev/null
end

complete --command latlab --no-files --keep-order --arguments '(__latlab_complete)'
