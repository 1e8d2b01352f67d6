# Takes the place of `compadd`, and keeps what is offered; Ctrl-T prints the line that is being typed, and what was kept.

typeset -ga offered

compadd() {
    # Questions of the completion system to itself, and help beside the words.
    if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * || $1 == -E* ]]; then
        builtin compadd "$@"
        return
    fi
    local -a hits
    builtin compadd -A hits "$@"
    offered+=("${(@)hits/#/$IPREFIX}")
    builtin compadd "$@"
}

show() {
    print -r -- "<<$BUFFER>>"
    print -rl -- "${(@)offered}" ">>>"
    offered=()
}

zle -N show
bindkey '^T' show
bindkey '^U' kill-whole-line
