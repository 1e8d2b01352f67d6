# bash completion for msgctl                                -*- shell-script -*-
#
# Written from the command tree of msgctl, which prints it with: msgctl completion bash
# It starts no process, and needs neither the package bash-completion nor msgctl itself.

# The commands of the group $1.
__msgctl_commands() {
    found=
    case $1 in
    '') found='sms call chatapp job 2fa state url history balance block profile doctor api completion sandbox' ;;
    'sms') found='send bulk segments' ;;
    'call') found='send bulk' ;;
    'chatapp') found='send order bulk' ;;
    'job') found='list show resume report states remove' ;;
    '2fa') found='send-sms send-call send-chatapp verify' ;;
    'state') found='get watch' ;;
    'url') found='shorten stats' ;;
    'history') found='list clear' ;;
    'balance') found='show check' ;;
    'block') found='add bulk' ;;
    'profile') found='add list show use remove path' ;;
    'sandbox') found='serve inbox click credit reset' ;;
    esac
}

# The options of the command $1, every spelling.
__msgctl_options() {
    found=
    case $1 in
    'sms send') found='-m --message --message-file --country-code --gsm7' ;;
    'sms bulk') found='-m --message --message-file --country-code --gsm7 --phone-column --skip-invalid --batch-size --concurrency --rate --max-credits' ;;
    'sms segments') found='--message-file' ;;
    'call send') found='-m --message --message-file --voice --audio-code --retries --leave-voicemail --no-leave-voicemail --country-code' ;;
    'call bulk') found='-m --message --message-file --voice --audio-code --retries --leave-voicemail --no-leave-voicemail --country-code --phone-column --skip-invalid --batch-size --concurrency --rate --max-credits' ;;
    'chatapp send') found='--template --body' ;;
    'chatapp order') found='--template --body' ;;
    'chatapp bulk') found='--template --phone-column --skip-invalid --concurrency --rate --max-credits' ;;
    'job resume') found='--resend-unknown --resend-refused --concurrency --rate --max-credits' ;;
    'job report') found='--only' ;;
    'job states') found='--concurrency --rate' ;;
    '2fa send-sms') found='--app-name --country-code' ;;
    '2fa send-call') found='--app-name --voice --retries --country-code' ;;
    '2fa send-chatapp') found='--app-name --template --country-code' ;;
    '2fa verify') found='--app-name --code --country-code' ;;
    'state get') found='--last' ;;
    'state watch') found='--until --interval --max-wait' ;;
    'url shorten') found='--name --alias --premium --group-name --domain-name --expiration-months' ;;
    'url stats') found='--since --until --category' ;;
    'history') found='--since --phone --limit' ;;
    'history list') found='--since --phone --limit' ;;
    'balance check') found='--min' ;;
    'block add') found='--name' ;;
    'block bulk') found='--name --phone-column --skip-invalid --concurrency --rate' ;;
    'profile add') found='--base-url --client --key-stdin --key-command --country-code --app-name --voice --allow-http --check --force' ;;
    'api') found='-f --form -q --query --input -i --include --quiet' ;;
    'sandbox serve') found='--port --host --client --key --credits --state --allow-ip --fault --seed' ;;
    'sandbox inbox') found='--kind --follow --base-url' ;;
    'sandbox click') found='--count --country --region --city --device --brand --model --operating-system --browser --lang --days --base-url' ;;
    'sandbox credit') found='--base-url' ;;
    'sandbox reset') found='--base-url' ;;
    esac
    found+=' '
    found+='-p --profile --json -o --output --fields -n --dry-run -y --yes -q --quiet -v --verbose --timeout --no-color -h --help -V --version'
}

# What is known of the option $2 of the command $1: its spellings, its values, whether it is taken again and again.
__msgctl_option() {
    same=$2 values= again=
    case $1:$2 in
    'sms send:-m'|'sms send:--message') same='-m --message' values='text' ;;
    'sms send:--message-file') same='--message-file' values='files' ;;
    'sms send:--country-code') same='--country-code' values='countries' ;;
    'sms send:--gsm7') same='--gsm7' values='' ;;
    'sms bulk:-m'|'sms bulk:--message') same='-m --message' values='text' ;;
    'sms bulk:--message-file') same='--message-file' values='files' ;;
    'sms bulk:--country-code') same='--country-code' values='countries' ;;
    'sms bulk:--gsm7') same='--gsm7' values='' ;;
    'sms bulk:--phone-column') same='--phone-column' values='text' ;;
    'sms bulk:--skip-invalid') same='--skip-invalid' values='' ;;
    'sms bulk:--batch-size') same='--batch-size' values='text' ;;
    'sms bulk:--concurrency') same='--concurrency' values='text' ;;
    'sms bulk:--rate') same='--rate' values='text' ;;
    'sms bulk:--max-credits') same='--max-credits' values='text' ;;
    'sms segments:--message-file') same='--message-file' values='files' ;;
    'call send:-m'|'call send:--message') same='-m --message' values='text' ;;
    'call send:--message-file') same='--message-file' values='files' ;;
    'call send:--voice') same='--voice' values='=Marian Penelope Conchita Mia Lucia Enrique Miguel' ;;
    'call send:--audio-code') same='--audio-code' values='text' ;;
    'call send:--retries') same='--retries' values='text' ;;
    'call send:--leave-voicemail'|'call send:--no-leave-voicemail') same='--leave-voicemail --no-leave-voicemail' values='' ;;
    'call send:--country-code') same='--country-code' values='countries' ;;
    'call bulk:-m'|'call bulk:--message') same='-m --message' values='text' ;;
    'call bulk:--message-file') same='--message-file' values='files' ;;
    'call bulk:--voice') same='--voice' values='=Marian Penelope Conchita Mia Lucia Enrique Miguel' ;;
    'call bulk:--audio-code') same='--audio-code' values='text' ;;
    'call bulk:--retries') same='--retries' values='text' ;;
    'call bulk:--leave-voicemail'|'call bulk:--no-leave-voicemail') same='--leave-voicemail --no-leave-voicemail' values='' ;;
    'call bulk:--country-code') same='--country-code' values='countries' ;;
    'call bulk:--phone-column') same='--phone-column' values='text' ;;
    'call bulk:--skip-invalid') same='--skip-invalid' values='' ;;
    'call bulk:--batch-size') same='--batch-size' values='text' ;;
    'call bulk:--concurrency') same='--concurrency' values='text' ;;
    'call bulk:--rate') same='--rate' values='text' ;;
    'call bulk:--max-credits') same='--max-credits' values='text' ;;
    'chatapp send:--template') same='--template' values='text' ;;
    'chatapp send:--body') same='--body' values='files' ;;
    'chatapp order:--template') same='--template' values='text' ;;
    'chatapp order:--body') same='--body' values='files' ;;
    'chatapp bulk:--template') same='--template' values='text' ;;
    'chatapp bulk:--phone-column') same='--phone-column' values='text' ;;
    'chatapp bulk:--skip-invalid') same='--skip-invalid' values='' ;;
    'chatapp bulk:--concurrency') same='--concurrency' values='text' ;;
    'chatapp bulk:--rate') same='--rate' values='text' ;;
    'chatapp bulk:--max-credits') same='--max-credits' values='text' ;;
    'job resume:--resend-unknown') same='--resend-unknown' values='' ;;
    'job resume:--resend-refused') same='--resend-refused' values='' ;;
    'job resume:--concurrency') same='--concurrency' values='text' ;;
    'job resume:--rate') same='--rate' values='text' ;;
    'job resume:--max-credits') same='--max-credits' values='text' ;;
    'job report:--only') same='--only' values='=accepted refused unknown pending invalid duplicate' ;;
    'job states:--concurrency') same='--concurrency' values='text' ;;
    'job states:--rate') same='--rate' values='text' ;;
    '2fa send-sms:--app-name') same='--app-name' values='text' ;;
    '2fa send-sms:--country-code') same='--country-code' values='countries' ;;
    '2fa send-call:--app-name') same='--app-name' values='text' ;;
    '2fa send-call:--voice') same='--voice' values='=Mariana Penelope Conchita Mia Lucia Enrique Miguel' ;;
    '2fa send-call:--retries') same='--retries' values='text' ;;
    '2fa send-call:--country-code') same='--country-code' values='countries' ;;
    '2fa send-chatapp:--app-name') same='--app-name' values='text' ;;
    '2fa send-chatapp:--template') same='--template' values='text' ;;
    '2fa send-chatapp:--country-code') same='--country-code' values='countries' ;;
    '2fa verify:--app-name') same='--app-name' values='text' ;;
    '2fa verify:--code') same='--code' values='text' ;;
    '2fa verify:--country-code') same='--country-code' values='countries' ;;
    'state get:--last') same='--last' values='' ;;
    'state watch:--until') same='--until' values='text' again=1 ;;
    'state watch:--interval') same='--interval' values='text' ;;
    'state watch:--max-wait') same='--max-wait' values='text' ;;
    'url shorten:--name') same='--name' values='text' ;;
    'url shorten:--alias') same='--alias' values='text' ;;
    'url shorten:--premium') same='--premium' values='' ;;
    'url shorten:--group-name') same='--group-name' values='text' ;;
    'url shorten:--domain-name') same='--domain-name' values='text' ;;
    'url shorten:--expiration-months') same='--expiration-months' values='text' ;;
    'url stats:--since') same='--since' values='text' ;;
    'url stats:--until') same='--until' values='text' ;;
    'url stats:--category') same='--category' values='=date hour country device operatingSystem region city brand model browser lang' ;;
    'history:--since') same='--since' values='text' ;;
    'history:--phone') same='--phone' values='text' ;;
    'history:--limit') same='--limit' values='text' ;;
    'history list:--since') same='--since' values='text' ;;
    'history list:--phone') same='--phone' values='text' ;;
    'history list:--limit') same='--limit' values='text' ;;
    'balance check:--min') same='--min' values='text' ;;
    'block add:--name') same='--name' values='text' ;;
    'block bulk:--name') same='--name' values='text' ;;
    'block bulk:--phone-column') same='--phone-column' values='text' ;;
    'block bulk:--skip-invalid') same='--skip-invalid' values='' ;;
    'block bulk:--concurrency') same='--concurrency' values='text' ;;
    'block bulk:--rate') same='--rate' values='text' ;;
    'profile add:--base-url') same='--base-url' values='text' ;;
    'profile add:--client') same='--client' values='text' ;;
    'profile add:--key-stdin') same='--key-stdin' values='' ;;
    'profile add:--key-command') same='--key-command' values='text' ;;
    'profile add:--country-code') same='--country-code' values='countries' ;;
    'profile add:--app-name') same='--app-name' values='text' ;;
    'profile add:--voice') same='--voice' values='=Marian Penelope Conchita Mia Lucia Enrique Miguel Mariana' ;;
    'profile add:--allow-http') same='--allow-http' values='' ;;
    'profile add:--check') same='--check' values='' ;;
    'profile add:--force') same='--force' values='' ;;
    'api:-f'|'api:--form') same='-f --form' values='text' again=1 ;;
    'api:-q'|'api:--query') same='-q --query' values='text' again=1 ;;
    'api:--input') same='--input' values='files' ;;
    'api:-i'|'api:--include') same='-i --include' values='' ;;
    'api:--quiet') same='--quiet' values='' ;;
    'sandbox serve:--port') same='--port' values='text' ;;
    'sandbox serve:--host') same='--host' values='text' ;;
    'sandbox serve:--client') same='--client' values='text' ;;
    'sandbox serve:--key') same='--key' values='text' ;;
    'sandbox serve:--credits') same='--credits' values='text' ;;
    'sandbox serve:--state') same='--state' values='files' ;;
    'sandbox serve:--allow-ip') same='--allow-ip' values='text' again=1 ;;
    'sandbox serve:--fault') same='--fault' values='=520 503 429 html delay= drop reject truncate garbage' again=1 ;;
    'sandbox serve:--seed') same='--seed' values='text' ;;
    'sandbox inbox:--kind') same='--kind' values='=sms call chatapp' ;;
    'sandbox inbox:--follow') same='--follow' values='' ;;
    'sandbox inbox:--base-url') same='--base-url' values='text' ;;
    'sandbox click:--count') same='--count' values='text' ;;
    'sandbox click:--country') same='--country' values='countries' ;;
    'sandbox click:--region') same='--region' values='text' ;;
    'sandbox click:--city') same='--city' values='text' ;;
    'sandbox click:--device') same='--device' values='text' ;;
    'sandbox click:--brand') same='--brand' values='text' ;;
    'sandbox click:--model') same='--model' values='text' ;;
    'sandbox click:--operating-system') same='--operating-system' values='text' ;;
    'sandbox click:--browser') same='--browser' values='text' ;;
    'sandbox click:--lang') same='--lang' values='text' ;;
    'sandbox click:--days') same='--days' values='text' ;;
    'sandbox click:--base-url') same='--base-url' values='text' ;;
    'sandbox credit:--base-url') same='--base-url' values='text' ;;
    'sandbox reset:--base-url') same='--base-url' values='text' ;;
    *':-p'|*':--profile') same='-p --profile' values='profiles' ;;
    *':--json') same='--json' values='' ;;
    *':-o'|*':--output') same='-o --output' values='=table json csv tsv' ;;
    *':--fields') same='--fields' values='text' ;;
    *':-n'|*':--dry-run') same='-n --dry-run' values='' ;;
    *':-y'|*':--yes') same='-y --yes' values='' ;;
    *':-q'|*':--quiet') same='-q --quiet' values='' ;;
    *':-v'|*':--verbose') same='-v --verbose' values='' ;;
    *':--timeout') same='--timeout' values='text' ;;
    *':--no-color') same='--no-color' values='' ;;
    *':-h'|*':--help') same='-h --help' values='' ;;
    *':-V'|*':--version') same='-V --version' values='' ;;
    esac
}

# The values of the argument number $2 of the command $1.
__msgctl_argument() {
    values=
    case $1:$2 in
    'sms bulk:1') values='files' ;;
    'call bulk:1') values='files' ;;
    'chatapp bulk:1') values='files' ;;
    'job show:1') values='jobs' ;;
    'job resume:1') values='jobs' ;;
    'job report:1') values='jobs' ;;
    'job states:1') values='jobs' ;;
    'job remove:1') values='jobs' ;;
    'block bulk:1') values='files' ;;
    'profile show:1') values='profiles' ;;
    'profile use:1') values='profiles' ;;
    'profile remove:1') values='stored' ;;
    'api:1') values='=GET POST PUT PATCH DELETE' ;;
    'api:2') values='=/balance /block-phone /send-sms /call/send /messages-state /2fa/send-sms /call/2fa/send-call /2fa/verification-code /url/short /url/short-statistic /chatapp/send /chatapp/store/order /2fa/send-chatapp' ;;
    'completion:1') values='=bash zsh fish' ;;
    esac
}

__msgctl_countries() {
    found='
    AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV BW BY BZ CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO FR GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP KE KG KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY QA RE RO RS RU RW SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG UM US UY UZ VA VC VE VG VI VN VU WF WS YE YT ZA ZM ZW
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
