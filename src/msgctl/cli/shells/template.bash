# bash completion for msgctl                                -*- shell-script -*-
#
# Written from the command tree of msgctl, which prints it with: msgctl completion bash
# It starts no process, and needs neither the package bash-completion nor msgctl itself.

# The commands of the group $1.
__msgctl_commands() {
    found=
    case $1 in
    @COMMANDS@
    esac
}

# The options of the command $1, every spelling.
__msgctl_options() {
    found=
    case $1 in
    @OPTIONS@
    esac
    found+=' '
    @COMMON@
}

# What is known of the option $2 of the command $1: its spellings, its values, whether it is taken again and again.
__msgctl_option() {
    same=$2 values= again=
    case $1:$2 in
    @OPTION@
    esac
}

# The values of the argument number $2 of the command $1.
__msgctl_argument() {
    values=
    case $1:$2 in
    @ARGUMENT@
    esac
}

__msgctl_countries() {
    found='
    @COUNTRIES@
    '
}

# Names of profiles: the heads of their tables in the configuration file.
__msgctl_profiles() {
    local line name file=${XDG_CONFIG_HOME:-$HOME/.config}/msgctl/config.toml
    local table='^[[:space:]]*\[[[:space:]]*profiles[[:space:]]*\.[[:space:]]*'
    local bare='([A-Za-z0-9_-]+)' quoted='["'\'']([A-Za-z0-9_.-]+)["'\'']'
    found=
    [[ -f $file ]] || file=$HOME/Library/Application\ Support/msgctl/config.toml
    [[ -z ${MSGCTL_CONFIG-} ]] || file=${MSGCTL_CONFIG/#'~/'/$HOME/}
    [[ -f $file && -r $file ]] || return 0
    while IFS= read -r line || [[ $line ]]; do
        [[ $line =~ $table($bare|$quoted)[[:space:]]*[].] ]] || continue
        name=${BASH_REMATCH[2]}${BASH_REMATCH[3]}
        [[ " $found " == *" $name "* ]] || found+=" $name"
    done < "$file"
}

# Identifiers of jobs: the names of their files.
__msgctl_jobs() {
    local file folder=${XDG_STATE_HOME:-$HOME/.local/state}/msgctl/jobs
    found=
    [[ -d $folder ]] || folder=$HOME/Library/Application\ Support/msgctl/jobs
    [[ -d $folder ]] || return 0
    for file in "$folder"/*.sqlite3; do
        file=${file##*/} file=${file%.sqlite3}
        [[ $file == *[!A-Za-z0-9_.-]* ]] || found+=" $file"
    done
}

# Take the command line apart. readline breaks words at = and : too; here `--output=json` is one word.
# Sets `words` (those before the cursor), `cur` (the one at the cursor) and `lead` (what of it readline leaves alone).
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
            word=$1 # without what stands behind the cursor
        fi
        cur+=$word
    done
    lead=${cur%"$1"}
    [[ $1 != [=:] ]] || lead=$cur
}

# Note that an option was given: its other spellings are not offered any more.
__msgctl_given() {
    __msgctl_option "$command" "$1"
    [[ $again ]] || given+="$same "
}

# Short options in one word: -qv, or -pNAME with its value.
__msgctl_bundle() {
    local index
    for ((index = 1; index < ${#1}; index++)); do
        __msgctl_given "-${1:index:1}"
        if [[ $values ]]; then
            [[ $index -lt $((${#1} - 1)) ]] || pending=$values
            return
        fi
    done
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

__msgctl_offer_options() {
    local word left=
    __msgctl_options "$command"
    for word in $found; do
        [[ $word == $1 && " $left " != *" $word "* ]] || continue
        __msgctl_option "$command" "$word" # what was given before the command may be another one there: -q of api
        [[ $given == *" ${same##* } "* ]] || left+=" $word"
    done
    __msgctl_offer '' "$left"
}

# Offer values, with $1 before them; $2 is one of the kinds, or = and the words themselves.
__msgctl_offer_values() {
    local sensitive=
    found=
    case $2 in
    =*) found=${2#=} ;;
    countries) __msgctl_countries ;;
    profiles) __msgctl_profiles; found+=' sandbox' ;;
    stored) __msgctl_profiles ;;
    jobs) __msgctl_jobs ;;
    files) __msgctl_offer_files; return ;;
    esac
    shopt -q nocasematch || sensitive=1
    shopt -s nocasematch
    __msgctl_offer "$1" "$found"
    [[ -z $sensitive ]] || shopt -u nocasematch
}

# readline completes file names by itself, where it can be told to.
__msgctl_offer_files() {
    compopt -o default 2> /dev/null && return
    local file
    for file in "$cur"*; do
        [[ ! -e $file ]] || COMPREPLY+=("$file")
    done
}

_msgctl() {
    local IFS=$' \t\n' found same values again words cur lead
    local word command= given=' ' number=0 pending= closed=
    COMPREPLY=()
    __msgctl_read "$2"
    for word in "${words[@]:1}"; do
        if [[ $pending ]]; then
            pending=
            continue
        fi
        case $closed$word in
        [\<\>] | [\<\>][\<\>\|] | '<<<' | [0-9\&][\<\>] | [0-9\&]'>>') pending=files ;;
        [\<\>]* | [0-9\&][\<\>]*) ;;
        --) closed=' ' ;;
        --*=*) __msgctl_given "${word%%=*}" ;;
        --*) __msgctl_given "$word"; pending=$values ;;
        -?*) __msgctl_bundle "$word" ;;
        *)
            __msgctl_commands "$command"
            if [[ " $found " == *" $word "* ]]; then
                command+="${command:+ }$word"
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
        __msgctl_option "$command" "${cur%%=*}"
        word=${cur%%=*}= cur=${cur#*=}
        __msgctl_offer_values "$word" "$values"
        ;;
    -*) __msgctl_offer_options '*' ;;
    *)
        __msgctl_commands "$command"
        __msgctl_offer '' "$found"
        __msgctl_argument "$command" $((number + 1))
        if [[ $values ]]; then
            __msgctl_offer_values '' "$values"
        elif [[ -z $found$cur$closed ]]; then
            __msgctl_offer_options '--*'
        fi
        ;;
    esac
}

complete -F _msgctl msgctl
