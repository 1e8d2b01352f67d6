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
    '')
        table=(
            'command sms - Send text messages'
            'command call - Make voice calls'
            'command chatapp - Send chat-app messages from templates'
            'command job - Check, resume and report on bulk sends'
            'command 2fa - Send and verify codes by SMS, call or chat app'
            'command state - Check the delivery state of SMS and calls'
            'command url - Create short URLs and count their clicks'
            'command history - Messages sent from this machine, and their results'
            'command usage - Show how many messages were sent from this machine, and the credits charged for them'
            'command balance - Show the credits left in the account'
            'command block - Block numbers from receiving messages'
            'command optout - Manage numbers that must not get your messages'
            'command profile - Manage accounts: base URL, client and key'
            'command api - Make any request with the profile'"'"'s credentials'
            'command sandbox - The emulator behind -p sandbox: nothing is really sent'
            'command doctor - Diagnose problems and suggest fixes'
            'command commands - Describe every command, its options and its output'
            'command completion - Print the shell completion script'
            'command help - Show help for a command'
        ) ;;
    sms)
        table=(
            'command send - Send one SMS to each number, in one request'
            'command bulk - Send an SMS to each recipient in a file, as a job'
            'command segments - Count the segments of a message and show its encoding'
        ) ;;
    'sms send')
        table=(
            'arguments - - '
            'option -m,--message text Text of the message; - reads standard input'
            'option --message-file files Read the message from a file; - is standard input'
            'option --country-code countries Country of national numbers, for example CO'
            'option --no-number-check - Send the digits as typed, for short codes and test numbers'
            'option --gsm7 - Replace letters outside GSM-7 (á → a) and leave out emoji, so that the message needs fewer segments'
            'option --once text Send at most once per key from this machine, or from all machines with a shared store; later runs print the first result'
            'option --resend-unknown - With --once: send again if the earlier outcome is unknown'
            'option --ignore-optout - Send even to numbers that opted out'
            'option --wait - Wait until every message is delivered; exit 6 if one is not'
            'option --max-wait text With --wait: maximum seconds to wait'
            'options --until text With --wait: a state to wait for (repeatable)'
        ) ;;
    'sms bulk')
        table=(
            'argument - files '
            'option -m,--message text Text of the message, with {column} placeholders'
            'option --message-file files Read the template from a file; - is standard input'
            'option --phone-column text Column with the phone numbers; detected if omitted'
            'option --first-number - If a cell has several numbers, use the first that can get the message'
            'option --skip-invalid - Skip invalid rows'
            'option --country-code countries Country of national numbers, for example CO'
            'option --no-number-check - Send the digits as typed, for short codes and test numbers'
            'option --gsm7 - Replace letters outside GSM-7 (á → a) and leave out emoji, so that the message needs fewer segments'
            'option --concurrency text Maximum simultaneous requests'
            'option --rate text Maximum recipients per second'
            'option --max-credits text Stop before the job costs more than N credits'
            'option --batch-size text Maximum numbers per request, for recipients of the same text'
            'option --name text Name for the job, to use in place of its ID'
            'options --exclude files Leave out the numbers in this file: one per line, CSV, JSON Lines or .xlsx'
            'option --window text Send only at these hours, in the recipient'"'"'s time zone: 08:00-19:00, or co (Colombian law)'
            'option --days text With --window: only on these days, for example mon-sat'
            'option --at text Schedule the job: 2026-12-01 09:00, tomorrow 09:00 or 09:00'
            'option --once text Create one job per key on this machine, or among all machines with a shared store; later runs print its result'
            'option --again - Send even if most people got the same message in the last 24 hours, or will'
            'option --exclude-repeats - Leave out people who got the same message in the last 24 hours, or will'
            'option --at-most text Leave out people who have already received N messages from this account since midnight (N/day) or Monday (N/week) in their time zone'
            'option --canary text Pause after N recipients; msgctl job resume continues'
            'options --test-to text First send the message of the first row to this number'
        ) ;;
    'sms segments')
        table=(
            'argument - - '
            'option --message-file files Read the message from a file; - is standard input'
            'option --gsm7 - Replace letters outside GSM-7 (á → a) and leave out emoji, so that the message needs fewer segments'
        ) ;;
    call)
        table=(
            'command send - Call each number and speak a message, or play stored audio'
            'command bulk - Call each recipient in a file, as a job'
        ) ;;
    'call send')
        table=(
            'arguments - - '
            'option -m,--message text Text of the message; - reads standard input'
            'option --message-file files Read the message from a file; - is standard input'
            'option --voice =Marian,Penelope,Conchita,Mia,Lucia,Enrique,Miguel Voice that speaks the message: Marian, Penelope, Conchita, Mia, Lucia, Enrique, Miguel'
            'option --audio-code text Stored audio to play instead of a message'
            'option --retries text Number of call attempts, 1 to 3'
            'option --leave-voicemail,--no-leave-voicemail - Leave a voicemail if the call is not answered'
            'option --country-code countries Country of national numbers, for example CO'
            'option --no-number-check - Send the digits as typed, for short codes and test numbers'
            'option --once text Send at most once per key from this machine, or from all machines with a shared store; later runs print the first result'
            'option --resend-unknown - With --once: send again if the earlier outcome is unknown'
            'option --ignore-optout - Send even to numbers that opted out'
            'option --wait - Wait until every message is delivered; exit 6 if one is not'
            'option --max-wait text With --wait: maximum seconds to wait'
            'options --until text With --wait: a state to wait for (repeatable)'
        ) ;;
    'call bulk')
        table=(
            'argument - files '
            'option -m,--message text Text of the message, with {column} placeholders'
            'option --message-file files Read the template from a file; - is standard input'
            'option --voice =Marian,Penelope,Conchita,Mia,Lucia,Enrique,Miguel Voice that speaks the message: Marian, Penelope, Conchita, Mia, Lucia, Enrique, Miguel'
            'option --audio-code text Stored audio to play instead of a message'
            'option --retries text Number of call attempts, 1 to 3'
            'option --leave-voicemail,--no-leave-voicemail - Leave a voicemail if the call is not answered'
            'option --phone-column text Column with the phone numbers; detected if omitted'
            'option --first-number - If a cell has several numbers, use the first that can get the message'
            'option --skip-invalid - Skip invalid rows'
            'option --country-code countries Country of national numbers, for example CO'
            'option --no-number-check - Send the digits as typed, for short codes and test numbers'
            'option --concurrency text Maximum simultaneous requests'
            'option --rate text Maximum recipients per second'
            'option --max-credits text Stop before the job costs more than N credits'
            'option --batch-size text Maximum numbers per request, for recipients of the same text'
            'option --name text Name for the job, to use in place of its ID'
            'options --exclude files Leave out the numbers in this file: one per line, CSV, JSON Lines or .xlsx'
            'option --window text Send only at these hours, in the recipient'"'"'s time zone: 08:00-19:00, or co (Colombian law)'
            'option --days text With --window: only on these days, for example mon-sat'
            'option --at text Schedule the job: 2026-12-01 09:00, tomorrow 09:00 or 09:00'
            'option --once text Create one job per key on this machine, or among all machines with a shared store; later runs print its result'
            'option --again - Send even if most people got the same message in the last 24 hours, or will'
            'option --exclude-repeats - Leave out people who got the same message in the last 24 hours, or will'
            'option --at-most text Leave out people who have already received N messages from this account since midnight (N/day) or Monday (N/week) in their time zone'
            'option --canary text Pause after N recipients; msgctl job resume continues'
            'options --test-to text First send the message of the first row to this number'
        ) ;;
    chatapp)
        table=(
            'command send - Send a chat-app message from a template'
            'command order - Send a store-order notification from a custom template'
            'command bulk - Send a message to each recipient in a file, as a job'
        ) ;;
    'chatapp send')
        table=(
            'argument - - '
            'arguments - - '
            'option --template text Name of the template'
            'option --body files Send the JSON object of this file instead of PHONE and VALUEs; - is standard input'
            'option --country-code countries Country of national numbers, for example CO'
            'option --no-number-check - Send the digits as typed, for short codes and test numbers'
            'option --once text Send at most once per key from this machine, or from all machines with a shared store; later runs print the first result'
            'option --resend-unknown - With --once: send again if the earlier outcome is unknown'
            'option --ignore-optout - Send even to numbers that opted out'
        ) ;;
    'chatapp order')
        table=(
            'argument - - '
            'arguments - - '
            'option --template text Name of the template'
            'option --body files Send the JSON object of this file instead of PHONE and VALUEs; - is standard input'
            'option --country-code countries Country of national numbers, for example CO'
            'option --no-number-check - Send the digits as typed, for short codes and test numbers'
            'option --once text Send at most once per key from this machine, or from all machines with a shared store; later runs print the first result'
            'option --resend-unknown - With --once: send again if the earlier outcome is unknown'
            'option --ignore-optout - Send even to numbers that opted out'
        ) ;;
    'chatapp bulk')
        table=(
            'argument - files '
            'arguments - - '
            'option --phone-column text Column with the phone numbers; detected if omitted'
            'option --first-number - If a cell has several numbers, use the first that can get the message'
            'option --skip-invalid - Skip invalid rows'
            'option --template text Name of the template'
            'option --country-code countries Country of national numbers, for example CO'
            'option --no-number-check - Send the digits as typed, for short codes and test numbers'
            'option --concurrency text Maximum simultaneous requests'
            'option --rate text Maximum recipients per second'
            'option --max-credits text Stop before the job costs more than N credits'
            'option --name text Name for the job, to use in place of its ID'
            'options --exclude files Leave out the numbers in this file: one per line, CSV, JSON Lines or .xlsx'
            'option --window text Send only at these hours, in the recipient'"'"'s time zone: 08:00-19:00, or co (Colombian law)'
            'option --days text With --window: only on these days, for example mon-sat'
            'option --at text Schedule the job: 2026-12-01 09:00, tomorrow 09:00 or 09:00'
            'option --once text Create one job per key on this machine, or among all machines with a shared store; later runs print its result'
            'option --again - Send even if most people got the same message in the last 24 hours, or will'
            'option --exclude-repeats - Leave out people who got the same message in the last 24 hours, or will'
            'option --at-most text Leave out people who have already received N messages from this account since midnight (N/day) or Monday (N/week) in their time zone'
            'option --canary text Pause after N recipients; msgctl job resume continues'
            'options --test-to text First send the message of the first row to this number'
        ) ;;
    job)
        table=(
            'command list - List the jobs, oldest first'
            'command show - Show a job'"'"'s status: accepted, refused and unknown counts'
            'command resume - Resume a job without sending to anyone twice'
            'command run-due - Send the scheduled jobs whose time has come'
            'command report - List every recipient and the result, in the order of the file'
            'command states - Check the delivery state of accepted messages'
            'command resend - Resend to a job'"'"'s undelivered or refused recipients'
            'command remove - Delete a job and its recipients'
            'command prune - Delete old jobs and their recipients, except unfinished ones'
        ) ;;
    'job list')
        table=(
        ) ;;
    'job show')
        table=(
            'argument - jobs '
            'option --last - Use the newest job that has begun'
            'option --follow - Keep showing it while it is running'
        ) ;;
    'job resume')
        table=(
            'argument - jobs '
            'option --last - Use the newest job that has begun'
            'option --resend-unknown - Resend messages with unknown outcome; some people may get them twice'
            'option --resend-refused - Resend messages that the service refused'
            'option --concurrency text Maximum simultaneous requests'
            'option --rate text Maximum recipients per second'
            'option --max-credits text Stop before the job costs more than N credits'
        ) ;;
    'job run-due')
        table=(
        ) ;;
    'job report')
        table=(
            'argument - jobs '
            'option --last - Use the newest job that has begun'
            'options --only =accepted,refused,unknown,pending,invalid,duplicate,excluded,undelivered Only these recipients: accepted, refused, unknown, pending, invalid, duplicate, excluded or undelivered (repeatable; commas separate several)'
            'option --to files Write an Excel workbook (.xlsx), or csv for Excel in Spanish (.csv)'
        ) ;;
    'job states')
        table=(
            'argument - jobs '
            'option --last - Use the newest job that has begun'
            'option --concurrency text Maximum simultaneous requests'
            'option --rate text Maximum recipients per second'
            'option --follow - Check again until every state is final'
            'options --until text With --follow: a state to wait for (repeatable)'
            'option --max-wait text With --follow: maximum seconds to wait'
        ) ;;
    'job resend')
        table=(
            'argument - jobs '
            'option --last - Use the newest job that has begun'
            'option --only =undelivered,refused Recipients to resend to: undelivered or refused'
        ) ;;
    'job remove')
        table=(
            'argument - jobs '
        ) ;;
    'job prune')
        table=(
            'option --before text Delete jobs created before this date; 90d is 90 days ago'
        ) ;;
    2fa)
        table=(
            'command send-sms - Send a verification code by SMS'
            'command send-call - Send a verification code by voice call'
            'command send-chatapp - Send a verification code by chat app'
            'command verify - Verify a code; exit 1 if it is wrong'
        ) ;;
    '2fa send-sms')
        table=(
            'argument - - '
            'option --app-name text Name of the application the code is for'
            'option --country-code countries Country of national numbers, for example CO'
            'option --no-number-check - Send the digits as typed, for short codes and test numbers'
        ) ;;
    '2fa send-call')
        table=(
            'argument - - '
            'option --app-name text Name of the application the code is for'
            'option --voice =Mariana,Penelope,Conchita,Mia,Lucia,Enrique,Miguel Voice that speaks the code: Mariana, Penelope, Conchita, Mia, Lucia, Enrique, Miguel'
            'option --retries text Number of call attempts, 1 to 3'
            'option --country-code countries Country of national numbers, for example CO'
            'option --no-number-check - Send the digits as typed, for short codes and test numbers'
        ) ;;
    '2fa send-chatapp')
        table=(
            'argument - - '
            'option --app-name text Name of the application the code is for'
            'option --template text Name of the template'
            'option --country-code countries Country of national numbers, for example CO'
            'option --no-number-check - Send the digits as typed, for short codes and test numbers'
        ) ;;
    '2fa verify')
        table=(
            'argument - - '
            'option --app-name text Name of the application the code is for'
            'option --code text The code received; - reads it from standard input'
            'option --country-code countries Country of national numbers, for example CO'
            'option --no-number-check - Send the digits as typed, for short codes and test numbers'
        ) ;;
    state)
        table=(
            'command get - Show the delivery state of each message'
            'command watch - Wait until each message reaches a state; exit 6 if one does not'
        ) ;;
    'state get')
        table=(
            'arguments - - '
            'option --last - Use the last message this profile sent from this machine'
        ) ;;
    'state watch')
        table=(
            'arguments - - '
            'option --last - Use the last message this profile sent from this machine'
            'options --until text State to wait for (repeatable); any final state if omitted'
            'option --interval text Seconds between checks'
            'option --max-wait text Maximum seconds to wait'
        ) ;;
    url)
        table=(
            'command shorten - Create a short URL'
            'command stats - Show the clicks on a short URL'
        ) ;;
    'url shorten')
        table=(
            'argument - - '
            'option --name text Name of the short URL, for msgctl url stats'
            'option --alias text Last part of the short URL'
            'option --premium,--no-premium - Create a premium URL with complete statistics'
            'option --group-name text Group for the URL'
            'option --domain-name text Domain of the short URL'
            'option --expiration-months text Months until the statistics expire; 0 for the service'"'"'s default'
        ) ;;
    'url stats')
        table=(
            'argument - - '
            'option --since text First day: YYYY-MM-DD, today, yesterday, or 7d'
            'option --until text Last day; today if omitted'
            'option --category =date,hour,country,device,operatingSystem,region,city,brand,model,browser,lang Show one category; region, city, brand, model, browser and lang need a premium URL: date, hour, country, device, operatingSystem, region, city, brand, model, browser, lang'
        ) ;;
    history)
        table=(
            'command list - List what was sent, the newest last'
            'command clear - Delete the history'
            'option --since text First day: YYYY-MM-DD, today, yesterday, or 7d'
            'option --until text Last day'
            'option --phone text Only this number'
            'option --country-code countries Country of national numbers, for example CO'
            'option --state text Only this delivery state'
            'option --command text Only this command, such as '"'"'sms send'"'"''
            'option --job text Only this job'"'"'s recipients: its ID or name'
            'option --limit text Only the newest N entries'
        ) ;;
    'history list')
        table=(
            'option --since text First day: YYYY-MM-DD, today, yesterday, or 7d'
            'option --until text Last day'
            'option --phone text Only this number'
            'option --country-code countries Country of national numbers, for example CO'
            'option --state text Only this delivery state'
            'option --command text Only this command, such as '"'"'sms send'"'"''
            'option --job text Only this job'"'"'s recipients: its ID or name'
            'option --limit text Only the newest N entries'
        ) ;;
    'history clear')
        table=(
            'option --before text Only entries before this day'
        ) ;;
    usage)
        table=(
            'option --since text First day: YYYY-MM-DD, today, yesterday, or 7d'
            'option --until text Last day'
            'option --by =day,month,command,job,country,profile One of day, month, command, job, country, profile'
        ) ;;
    balance)
        table=(
            'command show - Show the credits left; msgctl balance does the same'
            'command check - Exit with 0 if at least N credits are left, with 6 if not'
        ) ;;
    'balance show')
        table=(
        ) ;;
    'balance check')
        table=(
            'option --min text Lowest acceptable number of credits'
        ) ;;
    block)
        table=(
            'command add - Block a number'
            'command bulk - Block each number in a file, as a job'
        ) ;;
    'block add')
        table=(
            'argument - - '
            'option --name text Name of the contact'
            'option --country-code countries Country of national numbers, for example CO'
            'option --no-number-check - Send the digits as typed, for short codes and test numbers'
        ) ;;
    'block bulk')
        table=(
            'argument - files '
            'option --phone-column text Column with the phone numbers; detected if omitted'
            'option --first-number - If a cell has several numbers, use the first that can get the message'
            'option --skip-invalid - Skip invalid rows'
            'option --name text Name of the contact, with {column} placeholders'
            'option --country-code countries Country of national numbers, for example CO'
            'option --no-number-check - Send the digits as typed, for short codes and test numbers'
            'option --concurrency text Maximum simultaneous requests'
            'option --rate text Maximum recipients per second'
            'option --once text Create one job per key on this machine, or among all machines with a shared store; later runs print its result'
        ) ;;
    optout)
        table=(
            'command add - Add numbers to the opt-out list'
            'command list - List the numbers that opted out'
            'command remove - Remove numbers from the opt-out list'
            'command import - Add the numbers of a file to the opt-out list, all or none'
        ) ;;
    'optout add')
        table=(
            'arguments - - '
            'option --country-code countries Country of national numbers, for example CO'
            'option --channel =sms,call,chatapp,all Only this channel: sms, call, chatapp, or all of them'
        ) ;;
    'optout list')
        table=(
            'option --channel =sms,call,chatapp,all Only this channel: sms, call, chatapp, or all of them'
        ) ;;
    'optout remove')
        table=(
            'arguments - - '
            'option --country-code countries Country of national numbers, for example CO'
            'option --channel =sms,call,chatapp,all Only this channel: sms, call, chatapp, or all of them'
        ) ;;
    'optout import')
        table=(
            'argument - files '
            'option --country-code countries Country of national numbers, for example CO'
            'option --phone-column text Column with the phone numbers; detected if omitted'
            'option --channel =sms,call,chatapp,all Only this channel: sms, call, chatapp, or all of them'
        ) ;;
    profile)
        table=(
            'command add - Save an account'
            'command set - Change settings of a profile, or its key'
            'command list - List the profiles, without their keys'
            'command show - Show a profile, without its key'
            'command use - Make a profile the default'
            'command remove - Remove a profile and its key'
            'command path - Print the path of the configuration file'
        ) ;;
    'profile add')
        table=(
            'argument - - '
            'option --base-url text Base URL of the service; it ends in /api/v1'
            'option --client text Client ID of the account'
            'option --key-stdin - Read the key from standard input'
            'option --key-command text Save a command that prints the key, instead of the key'
            'option --keyring - Save the key in the system'"'"'s keychain'
            'option --country-code countries Default for --country-code'
            'option --app-name text Default for --app-name'
            'option --voice =Marian,Penelope,Conchita,Mia,Lucia,Enrique,Miguel,Mariana Default for --voice'
            'option --timezone text Time zone for jobs, such as America/Bogota'
            'option --allow-http,--no-allow-http - Allow plain http, which exposes the key'
            'option --check - Test the credentials first; save only if they work'
            'option --force - Replace an existing profile'
        ) ;;
    'profile set')
        table=(
            'argument - - '
            'option --base-url text Base URL of the service; it ends in /api/v1'
            'option --client text Client ID of the account'
            'option --key-stdin - Read the key from standard input'
            'option --key-command text Save a command that prints the key, instead of the key'
            'option --keyring - Save the key in the system'"'"'s keychain'
            'option --country-code countries Default for --country-code'
            'option --app-name text Default for --app-name'
            'option --voice =Marian,Penelope,Conchita,Mia,Lucia,Enrique,Miguel,Mariana Default for --voice'
            'option --timezone text Time zone for jobs, such as America/Bogota'
            'option --allow-http,--no-allow-http - Allow plain http, which exposes the key'
            'option --check - Test the credentials first; save only if they work'
        ) ;;
    'profile list')
        table=(
        ) ;;
    'profile show')
        table=(
            'argument - profiles '
        ) ;;
    'profile use')
        table=(
            'argument - profiles '
        ) ;;
    'profile remove')
        table=(
            'argument - stored '
        ) ;;
    'profile path')
        table=(
        ) ;;
    api)
        table=(
            'argument - =GET,POST,PUT,PATCH,DELETE '
            'argument - =/balance,/block-phone,/send-sms,/call/send,/messages-state,/2fa/send-sms,/call/2fa/send-call,/2fa/verification-code,/url/short,/url/short-statistic,/chatapp/send,/chatapp/store/order,/2fa/send-chatapp '
            'options -f text A parameter (repeatable)'
            'option --input files Send the JSON in this file as the body; - is standard input'
        ) ;;
    sandbox)
        table=(
            'command serve - Serve the sandbox over HTTP until it is stopped'
            'command record - Forward requests to the service and record each exchange'
            'command shapes - List the recorded responses that msgctl does not understand'
            'command inbox - Show messages that phones received, newest last'
            'command click - Simulate visits to a short URL'
            'command credit - Set the balance of the sandbox account'
            'command fault - Make requests fail on purpose, or show the faults that are set'
            'command clock - Show or change the sandbox clock, which controls delivery states and expiry'
            'command responses - Choose or show the form of the sandbox'"'"'s responses'
            'command reset - Delete everything in the sandbox, and start again'
        ) ;;
    'sandbox serve')
        table=(
            'option --port text Port to listen on; 0 for a free one'
            'option --host text Address to listen on'
            'options --allow-host text Also accept requests for this host name (repeatable)'
            'option --client text Client ID to accept'
            'option --key text Key to accept (any value)'
            'option --credits text Credits of a new account; 1000 if omitted'
            'option --state files Keep all data in this file; without it, nothing is kept'
            'options --allow-ip text Allow only these addresses (repeatable)'
            'options --fault =520,503,429,html,delay=,drop,reject,truncate,garbage Make requests fail (repeatable): KIND[:PROBABILITY][:PATH] or KIND:next=N[:PATH]'
            'option --seed text Seed for identifiers, codes and faults: same seed, same results'
            'option --clock text Set the clock: stop, +10m, or a time to stop it at'
            'option --responses =documented,observed,mixed Respond as services do: documented, observed, mixed or a TOML file'
            'option --replay files Replay responses that msgctl sandbox record wrote to a file'
            'option --open - Open the inbox page in a browser'
        ) ;;
    'sandbox record')
        table=(
            'option --to files Append each exchange to this file, as a line of JSON'
            'option --port text Port to listen on; 0 for a free one'
            'option --host text Address to listen on'
            'options --allow-host text Also accept requests for this host name (repeatable)'
        ) ;;
    'sandbox shapes')
        table=(
            'argument - files '
        ) ;;
    'sandbox inbox')
        table=(
            'argument - - '
            'option --country-code countries Country of national numbers, for example CO'
            'option --kind =sms,call,chatapp Only one kind: sms, call or chatapp'
            'option --follow - Keep printing new messages until Ctrl-C'
            'option --wait text Wait for a message; exit 6 if none arrives'
            'option --base-url text URL of a running sandbox, as printed by msgctl sandbox serve'
        ) ;;
    'sandbox click')
        table=(
            'argument - - '
            'option --count text Number of visits'
            'option --country countries Country, for example CO'
            'option --device text Kind of device'
            'option --days text Spread the visits over the last N days'
            'option --base-url text URL of a running sandbox, as printed by msgctl sandbox serve'
        ) ;;
    'sandbox credit')
        table=(
            'argument - - '
            'option --base-url text URL of a running sandbox, as printed by msgctl sandbox serve'
        ) ;;
    'sandbox fault')
        table=(
            'arguments - - '
            'option --base-url text URL of a running sandbox, as printed by msgctl sandbox serve'
        ) ;;
    'sandbox clock')
        table=(
            'argument - - '
            'option --base-url text URL of a running sandbox, as printed by msgctl sandbox serve'
        ) ;;
    'sandbox responses')
        table=(
            'argument - =documented,observed,mixed '
            'option --base-url text URL of a running sandbox, as printed by msgctl sandbox serve'
        ) ;;
    'sandbox reset')
        table=(
            'option --base-url text URL of a running sandbox, as printed by msgctl sandbox serve'
        ) ;;
    doctor)
        table=(
        ) ;;
    commands)
        table=(
        ) ;;
    completion)
        table=(
            'argument - =bash,zsh,fish '
        ) ;;
    help)
        table=(
            'arguments - - '
        ) ;;
    esac
    table+=(
    'option -p,--profile profiles Stored profile to use (MSGCTL_PROFILE)'
    'option --json - The service'"'"'s JSON unchanged; same as -o json'
    'option -o,--output =table,json,csv,tsv One of table, json, csv, tsv'
    'option --fields text Show only these fields, in this order'
    'option --no-header - Omit the header line of csv and tsv'
    'option -n,--dry-run - Show what would be sent, but send nothing'
    'option -y,--yes - Skip confirmation prompts'
    'option -q,--quiet - No notes or progress on standard error'
    'option -v,--verbose - Show requests; -vv adds headers and bodies'
    'option --timeout text Maximum total time per request'
    'option --no-color - No colour; NO_COLOR and TERM=dumb do the same'
    'option -h,--help - Show help'
    'option -V,--version - Show the version'
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
    AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV BW BY BZ CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO FR GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP KE KG KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY QA RE RO RS RU RW SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG UM US UY UZ VA VC VE VG VI VN VU WF WS YE YT ZA ZM ZW
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
