# fish completion for msgctl, written from its command tree; msgctl prints it with: msgctl completion fish

# The commands of the group $argv[1], each with its help.
function __msgctl_commands
    switch "$argv[1]"
    @COMMANDS@
    end
end

# The options of the command $argv[1], every spelling, each with its help.
function __msgctl_options
    switch "$argv[1]"
    @OPTIONS@
    end
    @COMMON@
end

# What is known of the option $argv[2] of the command $argv[1], a line each: its values, whether it is taken again and
# again, its spellings.
function __msgctl_option
    switch "$argv[1]:$argv[2]"
    @OPTION@
    case '*'
        printf '%s\n' '' '' $argv[2]
    end
end

# The values of the argument number $argv[2] of the command $argv[1].
function __msgctl_argument
    switch "$argv[1]:$argv[2]"
    @ARGUMENT@
    end
end

function __msgctl_countries
    string match -ar '[A-Z]+' '
    @COUNTRIES@
    '
end

# Names of profiles: the heads of their tables in the configuration file.
function __msgctl_profiles
    set -l file "$HOME/.config/msgctl/config.toml"
    test -z "$XDG_CONFIG_HOME"; or set file "$XDG_CONFIG_HOME/msgctl/config.toml"
    test -f "$file"; or set file "$HOME/Library/Application Support/msgctl/config.toml"
    test -z "$MSGCTL_CONFIG"; or set file (string replace -r '^~/' "$HOME/" -- $MSGCTL_CONFIG)
    test -f "$file" -a -r "$file"; or return
    set -l name '(?:([A-Za-z0-9_-]+)|"([A-Za-z0-9_.-]+)"|\'([A-Za-z0-9_.-]+)\')'
    string replace -rf "^\s*\[\s*profiles\s*\.\s*$name\s*[\].].*" '$1$2$3' <"$file" | string match -r '.+'
end

# Identifiers of jobs: the names of their files.
function __msgctl_jobs
    set -l folder "$HOME/.local/state/msgctl/jobs"
    test -z "$XDG_STATE_HOME"; or set folder "$XDG_STATE_HOME/msgctl/jobs"
    test -d "$folder"; or set folder "$HOME/Library/Application Support/msgctl/jobs"
    set -l files "$folder"/*.sqlite3
    string match -rg '/([A-Za-z0-9_.-]+)\.sqlite3$' -- $files
end

# Values of the kind $argv[1], or the words after =; $argv[2] is what was typed of them.
function __msgctl_values
    switch "$argv[1]"
        case '=*'
            string split ' ' -- (string sub -s 2 -- $argv[1])
        case countries
            __msgctl_countries
        case profiles
            __msgctl_profiles
            echo sandbox
        case stored
            __msgctl_profiles
        case jobs
            __msgctl_jobs
        case files
            __fish_complete_path "$argv[2]"
    end
end

function __msgctl_complete
    set -l words (commandline -opc)
    set -l cur (commandline -ct)
    set -l command ''
    set -l number 0
    set -l given
    set -l pending ''
    set -l closed ''
    for word in $words[2..-1]
        if test -n "$pending"
            set pending ''
            continue
        end
        set -l names
        switch "$closed$word"
            case '--'
                set closed ' '
            case '--*=*'
                set names (string split -m 1 = -- $word)[1]
            case '--*'
                set names $word
            case '-'
                set number (math $number + 1)
            case '-*'
                set names (string replace -r '^' - -- (string split '' -- (string sub -s 2 -- $word)))
            case '*'
                if __msgctl_commands $command | string match -q -- "$word"\t'*'
                    set command (string trim -- "$command $word")
                else
                    set number (math $number + 1)
                end
        end
        for index in (seq (count $names))
            set -l option (__msgctl_option $command $names[$index])
            test -n "$option[2]"; or set -a given $option[3..-1]
            test -n "$option[1]"; or continue
            # A value is the next word, unless it stands in this one: --output=json, -ojson
            if test $index -eq (count $names); and not string match -q -- '--*=*' $word
                set pending $option[1]
            end
            break
        end
    end

    if test -n "$pending"
        __msgctl_values $pending $cur
        return
    end
    switch "$closed$cur"
        case '--*=*'
            set -l parts (string split -m 1 = -- $cur)
            set -l option (__msgctl_option $command $parts[1])
            string replace -r -- '^' "$parts[1]=" (__msgctl_values $option[1] "$parts[2]")
        case '-*'
            __msgctl_offer_options $command $given
        case '*'
            set -l offered (__msgctl_commands $command)
            set -a offered (__msgctl_values (__msgctl_argument $command (math $number + 1)) "$cur")
            if test -n "$offered"
                printf '%s\n' $offered
            else if test -z "$cur$closed"
                __msgctl_offer_options $command $given | string match -- '--*'
            end
    end
end

# The options of the command $argv[1] without those in the rest of the arguments.
function __msgctl_offer_options
    set -l offered
    for line in (__msgctl_options $argv[1])
        set -l word (string split \t -- $line)[1]
        contains -- $word $offered; and continue
        set -a offered $word
        # What was given before the command may be another one there: -q of api.
        set -l option (__msgctl_option $argv[1] $word)
        contains -- $option[-1] $argv[2..-1]; or echo $line
    end
end

complete -c msgctl -e
complete -c msgctl -f -a '(__msgctl_complete)'
