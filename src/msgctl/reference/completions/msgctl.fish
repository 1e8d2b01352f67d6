# fish completion for msgctl. Generated from its command tree. To print it: msgctl completion fish
# Only to list profiles and jobs does it run msgctl.

# Print what can follow the command $argv[1]:
#   command NAME - HELP
#   option NAME,NAME VALUES HELP        (options, if it can be repeated)
#   argument - VALUES                   (arguments, if there can be several)
# VALUES are the choices after a =, or what to look up; - for a flag, and for an argument without suggestions.
function __msgctl_table
    switch "$argv[1]"
    @TABLE@
    end
    @COMMON@
end

# Print the option $argv[1] in the rows of a table that follow it.
function __msgctl_option
    set -l name (string escape --style=regex -- $argv[1])
    set -l found (string match -r -- "^options? (?:\S+,)?$name(?:,\S+)? .*" $argv[2..-1])
    echo $found[1]
end

# Offer the values $argv[1]; $argv[2] is the part of it that was typed, $argv[3] the program.
function __msgctl_values
    switch "$argv[1]"
        case '=*'
            string split , -- (string sub -s 2 -- $argv[1])
        case countries
            string match -ar '[A-Z]+' '
    @COUNTRIES@
            '
        case profiles
            __msgctl_list $argv[3] profile list --fields name
        case stored
            __msgctl_list $argv[3] profile list --fields name | string match -v sandbox
        case jobs
            __msgctl_list $argv[3] job list --fields job
        case files
            __fish_complete_path "$argv[2]"
    end
end

# Print what msgctl lists.
function __msgctl_list
    $argv -q -o tsv --no-header </dev/null 2>/dev/null
end

# Offer the options in $table that are not in $given.
function __msgctl_offer_options --no-scope-shadowing
    set -l offered
    for row in (string match -r '^options? .*' -- $table)
        set -l fields (string split -m 3 ' ' -- $row)
        set -l names (string split , -- $fields[2])
        contains -- $names[-1] $given; and continue
        for name in $names
            contains -- $name $offered; or printf '%s\t%s\n' $name $fields[4]
            set -a offered $name
        end
    end
end

function __msgctl_complete
    set -l words (commandline -opc)
    set -l cur (commandline -ct)
    set -l command ''
    set -l table (__msgctl_table '')
    set -l number 1
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
                if string match -q -- "command $word *" $table
                    set command (string trim -- "$command $word")
                    set table (__msgctl_table $command)
                else
                    set number (math $number + 1)
                end
        end
        for index in (seq (count $names))
            set -l option (string split ' ' -- (__msgctl_option $names[$index] $table))
            test "$option[1]" = options; or set -a given (string split , -- $option[2])
            contains -- "$option[3]" '' -; and continue
            # The value is the next word, unless it is in this one: --output=json, -ojson
            if test $index -eq (count $names); and not string match -q -- '--*=*' $word
                set pending $option[3]
            end
            break
        end
    end

    if test -n "$pending"
        __msgctl_values $pending "$cur" $words[1]
        return
    end
    switch "$closed$cur"
        case '--*=*'
            set -l parts (string split -m 1 = -- $cur)
            set -l option (string split ' ' -- (__msgctl_option $parts[1] $table))
            string replace -r -- '^' "$parts[1]=" (__msgctl_values "$option[3]" "$parts[2]" $words[1])
        case '-*'
            __msgctl_offer_options
        case '*'
            set -l offered (string match -rg '^command (\S+) - (.*)' -- $table)
            set -l arguments (string match -rg '^arguments? - (\S+)' -- $table)
            set -l values $arguments[$number]
            test -n "$values"; or set values (string match -rg '^arguments - (\S+)' -- $table)
            if test -n "$offered"
                printf '%s\t%s\n' $offered
            else if not contains -- "$values" '' -
                __msgctl_values $values "$cur" $words[1]
            else if test -z "$cur$closed"
                __msgctl_offer_options | string match -- '--*'
            end
    end
end

complete -c msgctl -e
complete -c msgctl -f -a '(__msgctl_complete)'
