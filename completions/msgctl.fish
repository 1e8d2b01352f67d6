# fish completion for msgctl. Generated from its command tree. To print it: msgctl completion fish
# Only to list profiles and jobs does it run msgctl.

# Print what can follow the command $argv[1]:
#   command NAME - HELP
#   option NAME,NAME VALUES HELP        (options, if it can be repeated)
#   argument - VALUES                   (arguments, if there can be several)
# VALUES are the choices after a =, or what to look up; - for a flag, and for an argument without suggestions.
function __msgctl_table
    switch "$argv[1]"
    case ''
        echo 'command sms - Send text messages'
        echo 'command call - Make voice calls'
        echo 'command chatapp - Send chat-app messages from templates'
        echo 'command job - Check, resume and report on bulk sends'
        echo 'command 2fa - Send and verify codes by SMS, call or chat app'
        echo 'command state - Check the delivery state of SMS and calls'
        echo 'command url - Create short URLs and count their clicks'
        echo 'command history - Messages sent from this machine, and their results'
        echo 'command usage - Show how many messages were sent from this machine, and the credits charged for them'
        echo 'command balance - Show the credits left in the account'
        echo 'command block - Block numbers from receiving messages'
        echo 'command optout - People who must not get your messages'
        echo 'command profile - Manage accounts: base URL, client and key'
        echo 'command api - Make any request with the profile\'s credentials'
        echo 'command sandbox - The emulator behind -p sandbox: nothing is really sent'
        echo 'command doctor - Diagnose problems and suggest fixes'
        echo 'command commands - Describe every command, its options and its output'
        echo 'command completion - Print the shell completion script'
        echo 'command help - Show help for a command'
        echo 'command version - Show the version; msgctl --version does the same'
    case 'sms'
        echo 'command send - Send one SMS to each number, in one request'
        echo 'command bulk - Send an SMS to each recipient in a file, as a job'
        echo 'command segments - Count the segments of a message and show its encoding'
    case 'sms send'
        echo 'arguments - - '
        echo 'option -m,--message text Text of the message; - reads standard input'
        echo 'option --message-file files Read the message from a file; - is standard input'
        echo 'option --country-code countries ISO 3166 country code, for example CO'
        echo 'option --no-number-check - Send the digits as typed, for short codes and test numbers'
        echo 'option --gsm7 - Replace letters outside GSM-7 (á → a) so the message needs fewer segments'
        echo 'option --once text Send at most once under this key; later calls print the same result'
        echo 'option --resend-unknown - With --once: send again if the earlier outcome is unknown'
        echo 'option --ignore-optout - Send even to numbers that opted out'
        echo 'option --wait - Then wait until every message is delivered; exit 6 if one is not'
        echo 'option --max-wait text With --wait: maximum seconds to wait'
    case 'sms bulk'
        echo 'argument - files '
        echo 'option -m,--message text Text of the message, with {column} placeholders'
        echo 'option --message-file files Read the template from a file; - is standard input'
        echo 'option --country-code countries ISO 3166 country code, for example CO'
        echo 'option --gsm7 - Replace letters outside GSM-7 (á → a) so the message needs fewer segments'
        echo 'option --name text Name for the job, to use in place of its ID'
        echo 'option --phone-column text Column with the phone numbers; detected if omitted'
        echo 'option --skip-invalid - Skip invalid rows'
        echo 'option --no-number-check - Send the digits as typed, for short codes and test numbers'
        echo 'option --batch-size text Maximum numbers per request, for recipients of the same text'
        echo 'option --concurrency text Maximum simultaneous requests'
        echo 'option --rate text Maximum recipients per second'
        echo 'option --max-credits text Stop before the job costs more than N credits'
        echo 'options --exclude files Leave out the numbers in this file: one per line, CSV or JSON Lines'
        echo 'option --window text Send only at these hours of the recipient\'s time zone: 08:00-19:00, or co'
        echo 'option --days text With --window: only on these days, for example mon-sat'
        echo 'option --at text Send later, for example at 2026-12-01 09:00, by msgctl job run-due'
        echo 'option --foreground - With --at: wait in the foreground, then send'
        echo 'option --again - Send even if another job sent the same to the same people'
    case 'sms segments'
        echo 'argument - - '
        echo 'option --message-file files Read the message from a file; - is standard input'
        echo 'option --gsm7 - Replace letters outside GSM-7 (á → a) so the message needs fewer segments'
    case 'call'
        echo 'command send - Call each number and speak a message, or play a stored audio'
        echo 'command bulk - Call each recipient in a file, as a job'
    case 'call send'
        echo 'arguments - - '
        echo 'option -m,--message text Text of the message; - reads standard input'
        echo 'option --message-file files Read the message from a file; - is standard input'
        echo 'option --voice =Marian,Penelope,Conchita,Mia,Lucia,Enrique,Miguel Voice that speaks the message: Marian, Penelope, Conchita, Mia, Lucia, Enrique, Miguel'
        echo 'option --audio-code text Stored audio to play instead of a message'
        echo 'option --retries text Number of call attempts, 1 to 3'
        echo 'option --leave-voicemail,--no-leave-voicemail - Leave a voicemail if the call is not answered'
        echo 'option --country-code countries ISO 3166 country code, for example CO'
        echo 'option --no-number-check - Send the digits as typed, for short codes and test numbers'
        echo 'option --once text Send at most once under this key; later calls print the same result'
        echo 'option --resend-unknown - With --once: send again if the earlier outcome is unknown'
        echo 'option --ignore-optout - Send even to numbers that opted out'
        echo 'option --wait - Then wait until every message is delivered; exit 6 if one is not'
        echo 'option --max-wait text With --wait: maximum seconds to wait'
    case 'call bulk'
        echo 'argument - files '
        echo 'option -m,--message text Text of the message, with {column} placeholders'
        echo 'option --message-file files Read the template from a file; - is standard input'
        echo 'option --voice =Marian,Penelope,Conchita,Mia,Lucia,Enrique,Miguel Voice that speaks the message: Marian, Penelope, Conchita, Mia, Lucia, Enrique, Miguel'
        echo 'option --audio-code text Stored audio to play instead of a message'
        echo 'option --retries text Number of call attempts, 1 to 3'
        echo 'option --leave-voicemail,--no-leave-voicemail - Leave a voicemail if the call is not answered'
        echo 'option --country-code countries ISO 3166 country code, for example CO'
        echo 'option --name text Name for the job, to use in place of its ID'
        echo 'option --phone-column text Column with the phone numbers; detected if omitted'
        echo 'option --skip-invalid - Skip invalid rows'
        echo 'option --no-number-check - Send the digits as typed, for short codes and test numbers'
        echo 'option --batch-size text Maximum numbers per request, for recipients of the same text'
        echo 'option --concurrency text Maximum simultaneous requests'
        echo 'option --rate text Maximum recipients per second'
        echo 'option --max-credits text Stop before the job costs more than N credits'
        echo 'options --exclude files Leave out the numbers in this file: one per line, CSV or JSON Lines'
        echo 'option --window text Send only at these hours of the recipient\'s time zone: 08:00-19:00, or co'
        echo 'option --days text With --window: only on these days, for example mon-sat'
        echo 'option --at text Send later, for example at 2026-12-01 09:00, by msgctl job run-due'
        echo 'option --foreground - With --at: wait in the foreground, then send'
        echo 'option --again - Send even if another job sent the same to the same people'
    case 'chatapp'
        echo 'command send - Send a chat-app message from a template'
        echo 'command order - Send a store-order notification from a custom template'
        echo 'command bulk - Send a message to each recipient in a file, as a job'
    case 'chatapp send'
        echo 'argument - - '
        echo 'arguments - - '
        echo 'option --template text Name of the template'
        echo 'option --body files Send the JSON object of this file instead of PHONE and VALUEs; - is standard input'
        echo 'option --country-code countries Country to read the number in, for example CO'
        echo 'option --no-number-check - Send the digits as typed, for short codes and test numbers'
        echo 'option --once text Send at most once under this key; later calls print the same result'
        echo 'option --resend-unknown - With --once: send again if the earlier outcome is unknown'
        echo 'option --ignore-optout - Send even to numbers that opted out'
    case 'chatapp order'
        echo 'argument - - '
        echo 'arguments - - '
        echo 'option --template text Name of the template'
        echo 'option --body files Send the JSON object of this file instead of PHONE and VALUEs; - is standard input'
        echo 'option --country-code countries Country to read the number in, for example CO'
        echo 'option --no-number-check - Send the digits as typed, for short codes and test numbers'
        echo 'option --once text Send at most once under this key; later calls print the same result'
        echo 'option --resend-unknown - With --once: send again if the earlier outcome is unknown'
        echo 'option --ignore-optout - Send even to numbers that opted out'
    case 'chatapp bulk'
        echo 'argument - files '
        echo 'arguments - - '
        echo 'option --template text Name of the template'
        echo 'option --name text Name for the job, to use in place of its ID'
        echo 'option --phone-column text Column with the phone numbers; detected if omitted'
        echo 'option --skip-invalid - Skip invalid rows'
        echo 'option --country-code countries Country to read the number in, for example CO'
        echo 'option --no-number-check - Send the digits as typed, for short codes and test numbers'
        echo 'option --concurrency text Maximum simultaneous requests'
        echo 'option --rate text Maximum recipients per second'
        echo 'option --max-credits text Stop before the job costs more than N credits'
        echo 'options --exclude files Leave out the numbers in this file: one per line, CSV or JSON Lines'
        echo 'option --window text Send only at these hours of the recipient\'s time zone: 08:00-19:00, or co'
        echo 'option --days text With --window: only on these days, for example mon-sat'
        echo 'option --at text Send later, for example at 2026-12-01 09:00, by msgctl job run-due'
        echo 'option --foreground - With --at: wait in the foreground, then send'
        echo 'option --again - Send even if another job sent the same to the same people'
    case 'job'
        echo 'command list - List the jobs, oldest first'
        echo 'command show - Show a job\'s status: accepted, refused and unknown counts'
        echo 'command resume - Resume a job without sending to anyone twice'
        echo 'command run-due - Send the scheduled jobs whose time has come'
        echo 'command report - List every recipient and the result, in the order of the file'
        echo 'command states - Check the delivery state of accepted messages'
        echo 'command resend - Make a new job of the undelivered or refused recipients of a job, and send it'
        echo 'command remove - Delete a job and its recipients'
        echo 'command prune - Delete old jobs and their recipients, except unfinished ones'
    case 'job list'
    case 'job show'
        echo 'argument - jobs '
        echo 'option --last - Use the newest job'
    case 'job resume'
        echo 'argument - jobs '
        echo 'option --last - Use the newest job'
        echo 'option --resend-unknown - Resend messages with unknown outcome; some people may get them twice'
        echo 'option --resend-refused - Resend messages that the service refused'
        echo 'option --concurrency text Maximum simultaneous requests'
        echo 'option --rate text Maximum recipients per second'
        echo 'option --max-credits text Stop before the job costs more than N credits'
    case 'job run-due'
    case 'job report'
        echo 'argument - jobs '
        echo 'option --last - Use the newest job'
        echo 'options --only =accepted,refused,unknown,pending,invalid,duplicate,excluded Only these recipients: accepted, refused, unknown, pending, invalid, duplicate, excluded, or undelivered (repeatable; commas separate several)'
    case 'job states'
        echo 'argument - jobs '
        echo 'option --last - Use the newest job'
        echo 'option --concurrency text Maximum simultaneous requests'
        echo 'option --rate text Maximum recipients per second'
        echo 'option --follow - Check again until every state is final'
    case 'job resend'
        echo 'argument - jobs '
        echo 'option --last - Use the newest job'
        echo 'option --only =accepted,refused,unknown,pending,invalid,duplicate,excluded Recipients to send to again: undelivered or refused'
    case 'job remove'
        echo 'argument - jobs '
    case 'job prune'
        echo 'option --before text Delete jobs created before this date; 90d is 90 days ago'
    case '2fa'
        echo 'command send-sms - Send a verification code by SMS'
        echo 'command send-call - Send a verification code by voice call'
        echo 'command send-chatapp - Send a verification code by chat app'
        echo 'command verify - Verify a code; exit 1 if it is wrong'
    case '2fa send-sms'
        echo 'argument - - '
        echo 'option --app-name text Name of the application the code is for'
        echo 'option --country-code countries ISO 3166 country code, for example CO'
        echo 'option --no-number-check - Send the digits as typed, for short codes and test numbers'
    case '2fa send-call'
        echo 'argument - - '
        echo 'option --app-name text Name of the application the code is for'
        echo 'option --voice =Mariana,Penelope,Conchita,Mia,Lucia,Enrique,Miguel Voice that speaks the code: Mariana, Penelope, Conchita, Mia, Lucia, Enrique, Miguel'
        echo 'option --retries text Number of call attempts, 1 to 3'
        echo 'option --country-code countries ISO 3166 country code, for example CO'
        echo 'option --no-number-check - Send the digits as typed, for short codes and test numbers'
    case '2fa send-chatapp'
        echo 'argument - - '
        echo 'option --app-name text Name of the application the code is for'
        echo 'option --template text Name of the template'
        echo 'option --country-code countries ISO 3166 country code, for example CO'
        echo 'option --no-number-check - Send the digits as typed, for short codes and test numbers'
    case '2fa verify'
        echo 'argument - - '
        echo 'option --app-name text Name of the application the code is for'
        echo 'option --code text The code received; - reads it from standard input'
        echo 'option --country-code countries ISO 3166 country code, for example CO'
        echo 'option --no-number-check - Send the digits as typed, for short codes and test numbers'
    case 'state'
        echo 'command get - Show the delivery state of each message'
        echo 'command watch - Wait until each message reaches a state; exit 6 if one does not'
    case 'state get'
        echo 'arguments - - '
        echo 'option --last - Use the last message this profile sent from this machine'
    case 'state watch'
        echo 'arguments - - '
        echo 'option --last - Use the last message this profile sent from this machine'
        echo 'options --until text State to wait for (repeatable)'
        echo 'option --interval text Seconds between checks'
        echo 'option --max-wait text Maximum seconds to wait'
    case 'url'
        echo 'command shorten - Create a short URL'
        echo 'command stats - Show the clicks on a short URL'
    case 'url shorten'
        echo 'argument - - '
        echo 'option --name text Name of the short URL, for msgctl url stats'
        echo 'option --alias text Last part of the short URL'
        echo 'option --premium,--no-premium - Create a premium URL with complete statistics'
        echo 'option --group-name text Group for the URL'
        echo 'option --domain-name text Domain of the short URL'
        echo 'option --expiration-months text Months until the statistics expire; 0 for the service\'s default'
    case 'url stats'
        echo 'argument - - '
        echo 'option --since text First day: YYYY-MM-DD, today, yesterday, or 7d'
        echo 'option --until text Last day; today if omitted'
        echo 'option --category =date,hour,country,device,operatingSystem,region,city,brand,model,browser,lang Show one category; those from region on need a premium URL: date, hour, country, device, operatingSystem, region, city, brand, model, browser, lang'
    case 'history'
        echo 'command list - List what was sent, the newest last'
        echo 'command clear - Delete the history'
        echo 'option --since text First day: YYYY-MM-DD, today, yesterday, or 7d'
        echo 'option --until text Last day'
        echo 'option --phone text Only this number'
        echo 'option --country-code countries Country to read the number in, for example CO'
        echo 'option --state text Only this delivery state'
        echo 'option --command text Only this command, such as \'sms send\''
        echo 'option --job text Only this job\'s recipients: its ID or name'
        echo 'option --limit text Only the newest N entries'
    case 'history list'
        echo 'option --since text First day: YYYY-MM-DD, today, yesterday, or 7d'
        echo 'option --until text Last day'
        echo 'option --phone text Only this number'
        echo 'option --country-code countries Country to read the number in, for example CO'
        echo 'option --state text Only this delivery state'
        echo 'option --command text Only this command, such as \'sms send\''
        echo 'option --job text Only this job\'s recipients: its ID or name'
        echo 'option --limit text Only the newest N entries'
    case 'history clear'
        echo 'option --before text Only entries before this day'
    case 'usage'
        echo 'option --since text First day: YYYY-MM-DD, today, yesterday, or 7d'
        echo 'option --until text Last day'
        echo 'option --by text One of day, month, command, job, country, profile'
    case 'balance'
        echo 'command show - Show the credits left; msgctl balance does the same'
        echo 'command check - Exit with 0 if at least N credits are left, with 6 if not'
    case 'balance show'
    case 'balance check'
        echo 'option --min text Lowest acceptable number of credits'
    case 'block'
        echo 'command add - Block a number'
        echo 'command bulk - Block each number in a file, as a job'
    case 'block add'
        echo 'argument - - '
        echo 'option --name text Name of the contact'
        echo 'option --country-code countries Country to read the number in, for example CO'
        echo 'option --no-number-check - Send the digits as typed, for short codes and test numbers'
    case 'block bulk'
        echo 'argument - files '
        echo 'option --name text Name of the contact, with {column} placeholders'
        echo 'option --phone-column text Column with the phone numbers; detected if omitted'
        echo 'option --skip-invalid - Skip invalid rows'
        echo 'option --country-code countries Country to read the number in, for example CO'
        echo 'option --no-number-check - Send the digits as typed, for short codes and test numbers'
        echo 'option --concurrency text Maximum simultaneous requests'
        echo 'option --rate text Maximum recipients per second'
    case 'optout'
        echo 'command add - Add numbers to the opt-out list'
        echo 'command list - List the numbers that opted out'
        echo 'command remove - Remove numbers from the opt-out list'
        echo 'command import - Add the numbers of a file to the opt-out list, all or none'
    case 'optout add'
        echo 'arguments - - '
        echo 'option --country-code countries ISO 3166 country code, for example CO'
    case 'optout list'
    case 'optout remove'
        echo 'arguments - - '
        echo 'option --country-code countries ISO 3166 country code, for example CO'
    case 'optout import'
        echo 'argument - files '
        echo 'option --country-code countries ISO 3166 country code, for example CO'
        echo 'option --phone-column text Column with the phone numbers; detected if omitted'
    case 'profile'
        echo 'command add - Save an account'
        echo 'command set - Change settings of a profile, or its key'
        echo 'command list - List the profiles, without their keys'
        echo 'command show - Show a profile, without its key'
        echo 'command use - Make a profile the default'
        echo 'command remove - Remove a profile and its key'
        echo 'command path - Print the path of the configuration file'
    case 'profile add'
        echo 'argument - - '
        echo 'option --base-url text Base URL of the service; it ends in /api/v1'
        echo 'option --client text Client ID of the account'
        echo 'option --key-stdin - Read the key from standard input'
        echo 'option --key-command text Save a command that prints the key, instead of the key'
        echo 'option --keyring - Save the key in the system\'s keychain'
        echo 'option --country-code countries Default for --country-code'
        echo 'option --app-name text Default for --app-name'
        echo 'option --voice =Marian,Penelope,Conchita,Mia,Lucia,Enrique,Miguel,Mariana Default for --voice'
        echo 'option --timezone text Time zone, such as America/Bogota'
        echo 'option --allow-http,--no-allow-http - Allow plain http, which exposes the key'
        echo 'option --check - Test the credentials first; save only if they work'
        echo 'option --force - Replace an existing profile'
    case 'profile set'
        echo 'argument - - '
        echo 'option --base-url text Base URL of the service; it ends in /api/v1'
        echo 'option --client text Client ID of the account'
        echo 'option --key-stdin - Read the key from standard input'
        echo 'option --key-command text Save a command that prints the key, instead of the key'
        echo 'option --keyring - Save the key in the system\'s keychain'
        echo 'option --country-code countries Default for --country-code'
        echo 'option --app-name text Default for --app-name'
        echo 'option --voice =Marian,Penelope,Conchita,Mia,Lucia,Enrique,Miguel,Mariana Default for --voice'
        echo 'option --timezone text Time zone, such as America/Bogota'
        echo 'option --allow-http,--no-allow-http - Allow plain http, which exposes the key'
        echo 'option --check - Test the credentials first; save only if they work'
    case 'profile list'
    case 'profile show'
        echo 'argument - profiles '
    case 'profile use'
        echo 'argument - profiles '
    case 'profile remove'
        echo 'argument - stored '
    case 'profile path'
    case 'api'
        echo 'argument - =GET,POST,PUT,PATCH,DELETE '
        echo 'argument - =/balance,/block-phone,/send-sms,/call/send,/messages-state,/2fa/send-sms,/call/2fa/send-call,/2fa/verification-code,/url/short,/url/short-statistic,/chatapp/send,/chatapp/store/order,/2fa/send-chatapp '
        echo 'options -f,--form text Form field (repeatable)'
        echo 'options -q,--query text Query parameter (repeatable)'
        echo 'option --input files Send the JSON in this file as the body; - is standard input'
        echo 'option -i,--include - Print the status line and the headers first'
        echo 'option --quiet - No notes or progress on standard error'
    case 'sandbox'
        echo 'command serve - Serve the sandbox over HTTP until it is stopped'
        echo 'command record - Forward requests to the profile\'s service, and record each exchange'
        echo 'command inbox - Show the messages that phones received, with their codes, newest last'
        echo 'command click - Simulate visits to a short URL; options you omit get random values'
        echo 'command credit - Set the balance of the sandbox account'
        echo 'command fault - Make requests fail on purpose, or show the faults that are set'
        echo 'command clock - Change or show the clock that delivery states and expiry follow'
        echo 'command reset - Delete everything in the sandbox, and start with 1000 credits again'
    case 'sandbox serve'
        echo 'option --port text Port to listen on; 0 for a free one'
        echo 'option --host text Address to listen on'
        echo 'option --client text Client ID to accept'
        echo 'option --key text Key to accept (any value)'
        echo 'option --credits text Credits of a new account; 1000 if omitted'
        echo 'option --state files Store all data in this file'
        echo 'options --allow-ip text Allow only these addresses (repeatable)'
        echo 'options --fault =520,503,429,html,delay=,drop,reject,truncate,garbage Make requests fail (repeatable): KIND[:PROBABILITY][:PATH] or KIND:next=N[:PATH]'
        echo 'option --seed text Seed for identifiers, codes and faults: same seed, same results'
        echo 'option --clock text Set the clock: stop, +10m, or a time at which it stops'
        echo 'options --allow-host text Also accept requests for this host name (repeatable)'
        echo 'option --replay files Replay responses from a file of msgctl sandbox record'
        echo 'option --open - Open the inbox page in a browser'
    case 'sandbox record'
        echo 'option --to files Append each exchange to this file, as a line of JSON'
        echo 'option --port text Port to listen on; 0 for a free one'
        echo 'option --host text Address to listen on'
        echo 'options --allow-host text Also accept requests for this host name (repeatable)'
    case 'sandbox inbox'
        echo 'argument - - '
        echo 'option --kind =sms,call,chatapp Only one kind: sms, call or chatapp'
        echo 'option --follow - Keep printing new messages until Ctrl-C'
        echo 'option --wait text Wait for a message; exit 6 if none arrives'
        echo 'option --base-url text URL of a running sandbox, as printed by msgctl sandbox serve'
    case 'sandbox click'
        echo 'argument - - '
        echo 'option --count text Number of visits'
        echo 'option --country countries Country, for example CO'
        echo 'option --region text Region'
        echo 'option --city text City'
        echo 'option --device text Kind of device'
        echo 'option --brand text Brand of the device'
        echo 'option --model text Model of the device'
        echo 'option --operating-system text Operating system'
        echo 'option --browser text Browser'
        echo 'option --lang text Language of the browser'
        echo 'option --days text Spread the visits over the last N days'
        echo 'option --base-url text URL of a running sandbox, as printed by msgctl sandbox serve'
    case 'sandbox credit'
        echo 'argument - - '
        echo 'option --base-url text URL of a running sandbox, as printed by msgctl sandbox serve'
    case 'sandbox fault'
        echo 'arguments - - '
        echo 'option --base-url text URL of a running sandbox, as printed by msgctl sandbox serve'
    case 'sandbox clock'
        echo 'argument - - '
        echo 'option --base-url text URL of a running sandbox, as printed by msgctl sandbox serve'
    case 'sandbox reset'
        echo 'option --base-url text URL of a running sandbox, as printed by msgctl sandbox serve'
    case 'doctor'
    case 'commands'
    case 'completion'
        echo 'argument - =bash,zsh,fish '
    case 'help'
        echo 'arguments - - '
    case 'version'
    end
    echo 'option -p,--profile profiles Stored profile to use (MSGCTL_PROFILE)'
    echo 'option --json - Print the service\'s JSON unchanged; same as -o json'
    echo 'option -o,--output =table,json,csv,tsv Output format: table, json, csv or tsv'
    echo 'option --fields text Show only these fields, in this order'
    echo 'option --no-header - Omit the header line of csv and tsv'
    echo 'option -n,--dry-run - Print the request and send nothing'
    echo 'option -y,--yes - Skip confirmation prompts'
    echo 'option -q,--quiet - No notes or progress on standard error'
    echo 'option -v,--verbose - Show each request and response on standard error; -vv adds headers and bodies'
    echo 'option --timeout text Maximum total time per request'
    echo 'option --no-color - No colour; NO_COLOR and TERM=dumb do the same'
    echo 'option -h,--help - Show this page'
    echo 'option -V,--version - Show the version'
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
    AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV BW BY BZ CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO FR GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP KE KG KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY QA RE RO RS RU RW SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG UM US UY UZ VA VC VE VG VI VN VU WF WS YE YT ZA ZM ZW
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
