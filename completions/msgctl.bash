_msgctl_completion() {
    local IFS=$'
'
    COMPREPLY=( $( env COMP_WORDS="${COMP_WORDS[*]}" \
                   COMP_CWORD=$COMP_CWORD \
                   _MSGCTL_COMPLETE=complete_bash $1 ) ) || compopt +o default 2>/dev/null
    return 0
}

complete -o default -F _msgctl_completion msgctl
