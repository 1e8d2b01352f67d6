#compdef msgctl
#
# zsh completion for msgctl, written from its command tree; msgctl prints it with: msgctl completion zsh
# As _msgctl in a folder of fpath it is loaded at the first TAB. It starts no process.

# The commands of the group $1.
__msgctl_commands() {
    found=()
    case $1 in
    @COMMANDS@
    esac
}

# The options of the command $1, every spelling.
__msgctl_options() {
    found=()
    case $1 in
    @OPTIONS@
    esac
    found+=(
    @COMMON@
    )
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
    found=(
    @COUNTRIES@
    )
}

# Names of profiles: the heads of their tables in the configuration file.
__msgctl_profiles() {
    local line file=${XDG_CONFIG_HOME:-$HOME/.config}/msgctl/config.toml
    local table='^[[:space:]]*\[[[:space:]]*profiles[[:space:]]*\.[[:space:]]*'
    local bare='([A-Za-z0-9_-]+)' quoted='["'\'']([A-Za-z0-9_.-]+)["'\'']'
    local -a match mbegin mend
    local MATCH MBEGIN MEND
    found=()
    [[ -f $file ]] || file="$HOME/Library/Application Support/msgctl/config.toml"
    [[ -z ${MSGCTL_CONFIG-} ]] || file=${MSGCTL_CONFIG/#'~/'/$HOME/}
    [[ -f $file && -r $file ]] || return 0
    while IFS= read -r line || [[ -n $line ]]; do
        [[ $line =~ "$table($bare|$quoted)[[:space:]]*[].]" ]] && found+=("$match[2]$match[3]")
    done < "$file"
    found=("${(@u)found}")
}

# Identifiers of jobs: the names of their files.
__msgctl_jobs() {
    local folder=${XDG_STATE_HOME:-$HOME/.local/state}/msgctl/jobs
    [[ -d $folder ]] || folder="$HOME/Library/Application Support/msgctl/jobs"
    found=("$folder"/*.sqlite3(N:t:r))
    found=("${(@)found:#*[^A-Za-z0-9_.-]*}")
}

# Note that an option was given: its other spellings are not offered any more.
__msgctl_given() {
    __msgctl_option "$command" "$1"
    [[ -n $again ]] || given+="$same "
}

# Short options in one word: -qv, or -pNAME with its value.
__msgctl_bundle() {
    local index
    for ((index = 1; index < ${#1}; index++)); do
        __msgctl_given "-${1:$index:1}"
        if [[ -n $values ]]; then
            ((index < ${#1} - 1)) || pending=$values
            return
        fi
    done
}

__msgctl_offer_options() {
    local each
    local -a left
    __msgctl_options "$command"
    for each in "${(@)found}"; do
        [[ $each == ${~1} && -z ${left[(r)${(b)each%%:*}:*]} ]] || continue
        __msgctl_option "$command" "${each%%:*}" # what was given before the command may be another one there: -q of api
        [[ $given == *" ${same##* } "* ]] || left+=("$each")
    done
    # What has the tag `options` is only shown after a dash.
    _describe -t ${${PREFIX:+options}:-long-options} option left
}

# Offer values of a kind, or the words after =.
__msgctl_offer_values() {
    local expl
    found=()
    case $1 in
    '='*) found=(${=${1#=}}) ;;
    countries) __msgctl_countries ;;
    profiles) __msgctl_profiles; found+=(sandbox) ;;
    stored) __msgctl_profiles ;;
    jobs) __msgctl_jobs ;;
    files) _files; return ;;
    esac
    _wanted values expl value compadd -M 'm:{a-zA-Z}={A-Za-z}' -a found
}

_msgctl() {
    local word command= given=' ' number=0 pending= closed= same= values= again=
    local -a found
    for word in "${(@)words[2,CURRENT - 1]}"; do
        if [[ -n $pending ]]; then
            pending=
            continue
        fi
        case $closed$word in
        --) closed=' ' ;;
        --*=*) __msgctl_given "${word%%=*}" ;;
        --*) __msgctl_given "$word"; pending=$values ;;
        -?*) __msgctl_bundle "$word" ;;
        *)
            __msgctl_commands "$command"
            if [[ -n ${found[(r)${(b)word}:*]} ]]; then
                command+="${command:+ }$word"
            else
                ((number += 1))
            fi
            ;;
        esac
    done

    if [[ -n $pending ]]; then
        __msgctl_offer_values "$pending"
        return
    fi
    case $closed$PREFIX in
    --*=*)
        __msgctl_option "$command" "${PREFIX%%=*}"
        compset -P 1 '*='
        __msgctl_offer_values "$values"
        ;;
    -*) __msgctl_offer_options '*' ;;
    *)
        __msgctl_commands "$command"
        if (( $#found )); then
            _describe -t commands command found
            return
        fi
        __msgctl_argument "$command" $((number + 1))
        if [[ -n $values ]]; then
            __msgctl_offer_values "$values"
        elif [[ -z $PREFIX$closed ]]; then
            __msgctl_offer_options '--*'
        fi
        ;;
    esac
}

if [[ $funcstack[1] == _msgctl ]]; then
    _msgctl "$@" # autoloaded: this was the first TAB
elif (( $+functions[compdef] )); then
    compdef _msgctl msgctl
fi
