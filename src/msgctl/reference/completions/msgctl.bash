# bash completion for msgctl                                -*- shell-script -*-
#
# Generated from the command tree of msgctl. To print it: msgctl completion bash
# The package bash-completion is not needed. Only to list profiles and jobs does it run msgctl.

# Set table to what can follow the command $1:
#   command NAME - HELP
#   option NAME,NAME VALUES HELP        (options, if it can be repeated)
#   argument - VALUES                   (arguments, if there can be several)
# VALUES are the choices after a =, or what to look up; - for a flag, and for an argument without suggestions.
__msgctl_table() {
    table=()
    case $1 in
    @TABLE@
    esac
    table+=(
    @COMMON@
    )
}

# Take a row of the table apart.
__msgctl_split() {
    local row=$1
    kind=${row%% *} row=${row#* }
    names=${row%% *} row=${row#* }
    values=${row%% *}
}

# Find the command $1 of the current group.
__msgctl_command() {
    local row
    for row in "${table[@]}"; do
        [[ $row != "command $1 "* ]] || return 0
    done
    return 1
}

# Find the option $1 of the current command, and note that it was given unless it can be repeated.
__msgctl_option() {
    local row
    for row in "${table[@]}"; do
        __msgctl_split "$row"
        if [[ $kind == option* && ,$names, == *,"$1",* ]]; then
            [[ $kind == options ]] || given+="${names//,/ } "
            return
        fi
    done
    values=-
}

# Find the values of the argument number $1 of the current command.
__msgctl_argument() {
    local row left=$1
    for row in "${table[@]}"; do
        __msgctl_split "$row"
        case $kind in
        argument) ((left -= 1)) || return 0 ;;
        arguments) return 0 ;;
        esac
    done
    values=-
}

# Short options in one word: -qv, or -pNAME with its value.
__msgctl_bundle() {
    local index
    for ((index = 1; index < ${#1}; index++)); do
        __msgctl_option "-${1:index:1}"
        if [[ $values != - ]]; then
            [[ $index -lt $((${#1} - 1)) ]] || pending=$values
            return
        fi
    done
}

# Split the command line into words. readline also breaks words at = and :, but `--output=json` is one word here.
# Sets `words` (before the cursor), `cur` (at the cursor) and `lead` (the part of it that readline keeps).
__msgctl_read() {
    local index word line=$COMP_LINE
    words=() cur=
    for ((index = 0; index <= COMP_CWORD; index++)); do
        word=${COMP_WORDS[index]}
        if [[ $index -gt 0 && $line == [[:space:]]* ]]; then
            words+=("$cur")
            cur=
        fi
        line=${line#"${line%%[![:space:]]*}"}
        line=${line#"$word"}
        if [[ $index -eq $COMP_CWORD && $word != [=:]* ]]; then
            word=$1 # without the text after the cursor
        fi
        cur+=$word
    done
    lead=${cur%"$1"}
    [[ $1 != [=:] ]] || lead=$cur
}

# Offer those of the words $2 that begin with $cur, each with $1 before it.
__msgctl_offer() {
    local word
    for word in $2; do
        [[ $word == "$cur"* ]] || continue
        [[ $word != *= ]] || compopt -o nospace 2> /dev/null
        word=$1$word
        COMPREPLY+=("${word#"$lead"}")
    done
}

# Offer the commands of the current group.
__msgctl_offer_commands() {
    local row
    for row in "${table[@]}"; do
        __msgctl_split "$row"
        [[ $kind != command ]] || __msgctl_offer '' "$names"
    done
}

# Offer the options of the current command that match $1 and were not given.
__msgctl_offer_options() {
    local row name left=' '
    for row in "${table[@]}"; do
        __msgctl_split "$row"
        [[ $kind == option* && $given != *" ${names##*,} "* ]] || continue
        for name in ${names//,/ }; do
            [[ $name != $1 || $left == *" $name "* ]] || left+="$name "
        done
    done
    __msgctl_offer '' "$left"
}

# Offer the values $2, with $1 before them.
__msgctl_offer_values() {
    local found= sensitive=
    case $2 in
    =*) found=${2#=} found=${found//,/ } ;;
    countries) found='
    @COUNTRIES@
    ' ;;
    profiles | stored) __msgctl_list profile list --fields name ;;
    jobs) __msgctl_list job list --fields job ;;
    files) __msgctl_offer_files; return ;;
    esac
    [[ $2 != stored ]] || found=${found/sandbox/}
    shopt -q nocasematch || sensitive=1
    shopt -s nocasematch
    __msgctl_offer "$1" "$found"
    [[ -z $sensitive ]] || shopt -u nocasematch
}

# Set found to what msgctl lists.
__msgctl_list() {
    found=$("${words[0]}" "$@" -q -o tsv --no-header < /dev/null 2> /dev/null)
}

# Leave file names to readline, if this bash can.
__msgctl_offer_files() {
    compopt -o default 2> /dev/null && return
    local file
    for file in "$cur"*; do
        [[ ! -e $file ]] || COMPREPLY+=("$file")
    done
}

_msgctl() {
    local IFS=$' \t\n' words cur lead kind names values
    local word command= given=' ' number=0 pending= closed=
    local -a table
    COMPREPLY=()
    __msgctl_read "$2"
    __msgctl_table ''
    for word in "${words[@]:1}"; do
        if [[ $pending ]]; then
            pending=
            continue
        fi
        case $closed$word in
        [\<\>] | [\<\>][\<\>\|] | '<<<' | [0-9\&][\<\>] | [0-9\&]'>>') pending=files ;;
        [\<\>]* | [0-9\&][\<\>]*) ;;
        --) closed=' ' ;;
        --*=*) __msgctl_option "${word%%=*}" ;;
        --*) __msgctl_option "$word"; pending=${values#-} ;;
        -?*) __msgctl_bundle "$word" ;;
        *)
            if __msgctl_command "$word"; then
                command+="${command:+ }$word"
                __msgctl_table "$command"
            else
                number=$((number + 1))
            fi
            ;;
        esac
    done

    if [[ $pending ]]; then
        __msgctl_offer_values '' "$pending"
        return
    fi
    case $closed$cur in
    [\<\>]* | [0-9\&][\<\>]*) __msgctl_offer_files ;;
    --*=*)
        __msgctl_option "${cur%%=*}"
        word=${cur%%=*}= cur=${cur#*=}
        __msgctl_offer_values "$word" "$values"
        ;;
    -*) __msgctl_offer_options '*' ;;
    *)
        __msgctl_offer_commands
        __msgctl_argument $((number + 1))
        if [[ $values != - ]]; then
            __msgctl_offer_values '' "$values"
        elif [[ ${#COMPREPLY[@]} -eq 0 && -z $cur$closed ]]; then
            __msgctl_offer_options '--*'
        fi
        ;;
    esac
}

complete -F _msgctl msgctl
