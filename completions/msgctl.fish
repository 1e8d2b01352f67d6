# fish completion for msgctl, written from its command tree; msgctl prints it with: msgctl completion fish

# The commands of the group $argv[1], each with its help.
function __msgctl_commands
    switch "$argv[1]"
    case ''
        printf '%s\t%s\n' 'sms' 'SMS text messages' 'call' 'Voice calls' 'chatapp' 'Chat-app messages from templates' 'job' 'Bulk sends: how they stand, and how they go on' '2fa' 'Verification codes by SMS, call and chat app' 'state' 'Delivery states of SMS and calls' 'url' 'Short URLs and their clicks' 'history' 'What was sent from this machine, and what came of it' 'balance' 'Credits left in the account' 'block' 'Numbers that get no message any more' 'profile' 'Stored accounts: base URL, client and key' 'doctor' 'Find out why it does not work, and say what to mend' 'api' 'Make any request, with the credentials of the profile' 'completion' 'Print the script by which a shell completes msgctl' 'sandbox' 'The emulator behind -p sandbox: nothing is really sent'
    case 'sms'
        printf '%s\t%s\n' 'send' 'Send one SMS to each number, in one request' 'bulk' 'Send an SMS to each recipient in a file, as a job' 'segments' 'Count the segments of a message, and say which alphabet it needs'
    case 'call'
        printf '%s\t%s\n' 'send' 'Call each number and speak a message, or play a stored audio' 'bulk' 'Call each recipient in a file, as a job'
    case 'chatapp'
        printf '%s\t%s\n' 'send' 'Send a chat-app message from a template' 'order' 'Send a store-order notification from a custom template' 'bulk' 'Send a message to each recipient in a file, as a job'
    case 'job'
        printf '%s\t%s\n' 'list' 'List the jobs, the oldest first' 'show' 'Show how a job stands: what was accepted, refused, or is unknown' 'resume' 'Go on with a job, and send to nobody twice' 'report' 'List every recipient with what became of it, in the order of the file' 'states' 'Ask for the delivery states of what was accepted' 'remove' 'Forget a job: its recipients, and what became of them'
    case '2fa'
        printf '%s\t%s\n' 'send-sms' 'Send a verification code by SMS' 'send-call' 'Speak a verification code in a call' 'send-chatapp' 'Send a verification code by chat app' 'verify' 'Verify a code that was sent'
    case 'state'
        printf '%s\t%s\n' 'get' 'Show the delivery state of each message' 'watch' 'Wait until each message comes to a state; exit with 6 if one does not'
    case 'url'
        printf '%s\t%s\n' 'shorten' 'Make a short URL' 'stats' 'Show the clicks on a short URL'
    case 'history'
        printf '%s\t%s\n' 'list' 'List what was sent, the newest last' 'clear' 'Forget what was sent'
    case 'balance'
        printf '%s\t%s\n' 'show' 'Show the credits left; msgctl balance alone does the same' 'check' 'Exit with 0 while at least N credits are left, else with 6'
    case 'block'
        printf '%s\t%s\n' 'add' 'Stop all sending to a number' 'bulk' 'Block each number in a file, as a job'
    case 'profile'
        printf '%s\t%s\n' 'add' 'Store an account; ask for its key, and do not show it' 'list' 'List the profiles, without their keys' 'show' 'Show a profile, without its key' 'use' 'Make a profile the default' 'remove' 'Remove a profile and its key' 'path' 'Print where the profiles are stored'
    case 'sandbox'
        printf '%s\t%s\n' 'serve' 'Serve the sandbox over HTTP until it is stopped' 'inbox' 'Show what the phones received: texts and codes, the newest last' 'click' 'Visit a short URL; what is not given is made up' 'credit' 'Set the credits of the sandbox account' 'reset' 'Forget everything, and start with 1000 credits again'
    end
end

# The options of the command $argv[1], every spelling, each with its help.
function __msgctl_options
    switch "$argv[1]"
    case 'sms send'
        printf '%s\t%s\n' '-m' 'Text of the message' '--message' 'Text of the message' '--message-file' 'Read the message from a file; - is standard input' '--country-code' 'ISO 3166 country code, for example CO' '--gsm7' 'Write the message with the letters of GSM-7, á as a, so that it needs fewer segments'
    case 'sms bulk'
        printf '%s\t%s\n' '-m' 'Text of the message, with {column} in it' '--message' 'Text of the message, with {column} in it' '--message-file' 'Read the template from a file; - is standard input' '--country-code' 'ISO 3166 country code, for example CO' '--gsm7' 'Write the message with the letters of GSM-7, á as a, so that it needs fewer segments' '--phone-column' 'Column of the phone numbers' '--skip-invalid' 'Leave out rows that cannot be sent to' '--batch-size' 'Most numbers in a request, where their text is the same' '--concurrency' 'Requests under way at once' '--rate' 'Recipients a second at most' '--max-credits' 'Stop before the job costs more than N credits'
    case 'sms segments'
        printf '%s\t%s\n' '--message-file' 'Read the message from a file; - is standard input'
    case 'call send'
        printf '%s\t%s\n' '-m' 'Text of the message' '--message' 'Text of the message' '--message-file' 'Read the message from a file; - is standard input' '--voice' 'Voice that speaks it: Marian, Penelope, Conchita, Mia, Lucia, Enrique, Miguel' '--audio-code' 'Stored audio to play instead of a message' '--retries' 'Attempts to call, 1 to 3' '--leave-voicemail' 'Leave a voicemail message when nobody answers' '--no-leave-voicemail' 'Leave a voicemail message when nobody answers' '--country-code' 'ISO 3166 country code, for example CO'
    case 'call bulk'
        printf '%s\t%s\n' '-m' 'Text of the message, with {column} in it' '--message' 'Text of the message, with {column} in it' '--message-file' 'Read the template from a file; - is standard input' '--voice' 'Voice that speaks it: Marian, Penelope, Conchita, Mia, Lucia, Enrique, Miguel' '--audio-code' 'Stored audio to play instead of a message' '--retries' 'Attempts to call, 1 to 3' '--leave-voicemail' 'Leave a voicemail message when nobody answers' '--no-leave-voicemail' 'Leave a voicemail message when nobody answers' '--country-code' 'ISO 3166 country code, for example CO' '--phone-column' 'Column of the phone numbers' '--skip-invalid' 'Leave out rows that cannot be sent to' '--batch-size' 'Most numbers in a request, where their text is the same' '--concurrency' 'Requests under way at once' '--rate' 'Recipients a second at most' '--max-credits' 'Stop before the job costs more than N credits'
    case 'chatapp send'
        printf '%s\t%s\n' '--template' 'Name of the template' '--body' 'Send the JSON object of this file instead of PHONE and VALUEs; - is standard input'
    case 'chatapp order'
        printf '%s\t%s\n' '--template' 'Name of the template' '--body' 'Send the JSON object of this file instead of PHONE and VALUEs; - is standard input'
    case 'chatapp bulk'
        printf '%s\t%s\n' '--template' 'Name of the template' '--phone-column' 'Column of the phone numbers' '--skip-invalid' 'Leave out rows that cannot be sent to' '--concurrency' 'Requests under way at once' '--rate' 'Recipients a second at most' '--max-credits' 'Stop before the job costs more than N credits'
    case 'job resume'
        printf '%s\t%s\n' '--resend-unknown' 'Send again what may have arrived already: some may get it twice' '--resend-refused' 'Send again what the service refused' '--concurrency' 'Requests under way at once, from now on' '--rate' 'Recipients a second at most' '--max-credits' 'Stop before the job costs more than N credits'
    case 'job report'
        printf '%s\t%s\n' '--only' 'Only recipients with this outcome: accepted, refused, unknown, pending, invalid, duplicate'
    case 'job states'
        printf '%s\t%s\n' '--concurrency' 'Requests under way at once, from now on' '--rate' 'Recipients a second at most'
    case '2fa send-sms'
        printf '%s\t%s\n' '--app-name' 'Name of the application that the code is for' '--country-code' 'ISO 3166 country code, for example CO'
    case '2fa send-call'
        printf '%s\t%s\n' '--app-name' 'Name of the application that the code is for' '--voice' 'Voice that speaks the code: Mariana, Penelope, Conchita, Mia, Lucia, Enrique, Miguel' '--retries' 'Attempts to call, 1 to 3' '--country-code' 'ISO 3166 country code, for example CO'
    case '2fa send-chatapp'
        printf '%s\t%s\n' '--app-name' 'Name of the application that the code is for' '--template' 'Name of the template' '--country-code' 'ISO 3166 country code, for example CO'
    case '2fa verify'
        printf '%s\t%s\n' '--app-name' 'Name of the application that the code is for' '--code' 'The code received; - reads it from standard input' '--country-code' 'ISO 3166 country code, for example CO'
    case 'state get'
        printf '%s\t%s\n' '--last' 'Show what this profile sent last, by the history of this machine'
    case 'state watch'
        printf '%s\t%s\n' '--until' 'State to wait for, repeatable; any final state if left out' '--interval' 'Seconds between two looks' '--max-wait' 'Seconds to wait in all'
    case 'url shorten'
        printf '%s\t%s\n' '--name' 'Name of the short URL, by which its statistics are read' '--alias' 'Ending of the short URL that you want' '--premium' 'Make a premium URL, with complete statistics' '--group-name' 'Group that the URL belongs to' '--domain-name' 'Domain of the short URL' '--expiration-months' 'Months until the statistics expire; 0 for the service\'s default'
    case 'url stats'
        printf '%s\t%s\n' '--since' 'First day: YYYY-MM-DD, today, yesterday, or 7d' '--until' 'Last day; today if left out' '--category' 'Only this category; region and those after it need a premium URL: date, hour, country, device, operatingSystem, region, city, brand, model, browser, lang'
    case 'history'
        printf '%s\t%s\n' '--since' 'First day: YYYY-MM-DD, today, yesterday, or 7d' '--phone' 'Only what was sent to this number' '--limit' 'Only the newest N entries'
    case 'history list'
        printf '%s\t%s\n' '--since' 'First day: YYYY-MM-DD, today, yesterday, or 7d' '--phone' 'Only what was sent to this number' '--limit' 'Only the newest N entries'
    case 'balance check'
        printf '%s\t%s\n' '--min' 'Credits that have to be left'
    case 'block add'
        printf '%s\t%s\n' '--name' 'Name of the contact'
    case 'block bulk'
        printf '%s\t%s\n' '--name' 'Name of the contact, with {column} in it' '--phone-column' 'Column of the phone numbers' '--skip-invalid' 'Leave out rows that cannot be sent to' '--concurrency' 'Requests under way at once' '--rate' 'Recipients a second at most'
    case 'profile add'
        printf '%s\t%s\n' '--base-url' 'Where the service is; it ends in /api/v1' '--client' 'Client identifier of the account' '--key-stdin' 'Read the key from standard input' '--key-command' 'Store a command that prints the key, not the key' '--country-code' 'Default for --country-code' '--app-name' 'Default for --app-name' '--voice' 'Default for --voice' '--allow-http' 'Allow plain http, which shows the key to the network' '--check' 'Ask for the balance first; store only if it comes' '--force' 'Replace a profile of the same name'
    case 'api'
        printf '%s\t%s\n' '-f' 'A field of the form body; may be given again' '--form' 'A field of the form body; may be given again' '-q' 'A parameter of the query; may be given again' '--query' 'A parameter of the query; may be given again' '--input' 'Send the JSON of this file as the body; - is standard input' '-i' 'Print the status line and the headers first' '--include' 'Print the status line and the headers first' '--quiet' 'No notes or progress on standard error'
    case 'sandbox serve'
        printf '%s\t%s\n' '--port' 'Port to listen on; 0 takes a free one' '--host' 'Address to listen on' '--client' 'Client identifier that is let in' '--key' 'Key that is let in; make one up' '--credits' 'Credits of a new state, 1000 if left out' '--state' 'Keep everything in this file' '--allow-ip' 'Let only these addresses call the interface; repeatable' '--fault' 'Make requests fail: KIND[:PROBABILITY][:PATH]; repeatable' '--seed' 'Make the same faults in every run'
    case 'sandbox inbox'
        printf '%s\t%s\n' '--kind' 'Only one kind: sms, call or chatapp' '--follow' 'Go on printing what arrives, until Ctrl-C' '--base-url' 'A sandbox that is served, as msgctl sandbox serve printed it'
    case 'sandbox click'
        printf '%s\t%s\n' '--count' 'Number of visits' '--country' 'Country of the visitors, for example CO' '--region' 'Their region' '--city' 'Their city' '--device' 'Kind of device' '--brand' 'Its brand' '--model' 'Its model' '--operating-system' 'Its operating system' '--browser' 'The browser' '--lang' 'Language of the browser' '--days' 'Spread them over the last N days' '--base-url' 'A sandbox that is served, as msgctl sandbox serve printed it'
    case 'sandbox credit'
        printf '%s\t%s\n' '--base-url' 'A sandbox that is served, as msgctl sandbox serve printed it'
    case 'sandbox reset'
        printf '%s\t%s\n' '--base-url' 'A sandbox that is served, as msgctl sandbox serve printed it'
    end
    printf '%s\t%s\n' '-p' 'Profile to use; MSGCTL_PROFILE does the same' '--profile' 'Profile to use; MSGCTL_PROFILE does the same' '--json' 'Print the service\'s JSON unchanged; same as -o json' '-o' 'Print a table, json, csv or tsv' '--output' 'Print a table, json, csv or tsv' '--fields' 'Only these columns of a table, csv or tsv' '-n' 'Print the request and send nothing' '--dry-run' 'Print the request and send nothing' '-y' 'Answer every question with yes' '--yes' 'Answer every question with yes' '-q' 'No notes or progress on standard error' '--quiet' 'No notes or progress on standard error' '-v' 'Show each request and answer on standard error' '--verbose' 'Show each request and answer on standard error' '--timeout' 'The whole time one request may take' '--no-color' 'No colour; NO_COLOR and TERM=dumb do the same' '-h' 'Show this page' '--help' 'Show this page' '-V' 'Show the version' '--version' 'Show the version'
end

# What is known of the option $argv[2] of the command $argv[1], a line each: its values, whether it is taken again and
# again, its spellings.
function __msgctl_option
    switch "$argv[1]:$argv[2]"
    case 'sms send:-m' 'sms send:--message'
        printf '%s\n' 'text' '' '-m' '--message'
    case 'sms send:--message-file'
        printf '%s\n' 'files' '' '--message-file'
    case 'sms send:--country-code'
        printf '%s\n' 'countries' '' '--country-code'
    case 'sms send:--gsm7'
        printf '%s\n' '' '' '--gsm7'
    case 'sms bulk:-m' 'sms bulk:--message'
        printf '%s\n' 'text' '' '-m' '--message'
    case 'sms bulk:--message-file'
        printf '%s\n' 'files' '' '--message-file'
    case 'sms bulk:--country-code'
        printf '%s\n' 'countries' '' '--country-code'
    case 'sms bulk:--gsm7'
        printf '%s\n' '' '' '--gsm7'
    case 'sms bulk:--phone-column'
        printf '%s\n' 'text' '' '--phone-column'
    case 'sms bulk:--skip-invalid'
        printf '%s\n' '' '' '--skip-invalid'
    case 'sms bulk:--batch-size'
        printf '%s\n' 'text' '' '--batch-size'
    case 'sms bulk:--concurrency'
        printf '%s\n' 'text' '' '--concurrency'
    case 'sms bulk:--rate'
        printf '%s\n' 'text' '' '--rate'
    case 'sms bulk:--max-credits'
        printf '%s\n' 'text' '' '--max-credits'
    case 'sms segments:--message-file'
        printf '%s\n' 'files' '' '--message-file'
    case 'call send:-m' 'call send:--message'
        printf '%s\n' 'text' '' '-m' '--message'
    case 'call send:--message-file'
        printf '%s\n' 'files' '' '--message-file'
    case 'call send:--voice'
        printf '%s\n' '=Marian Penelope Conchita Mia Lucia Enrique Miguel' '' '--voice'
    case 'call send:--audio-code'
        printf '%s\n' 'text' '' '--audio-code'
    case 'call send:--retries'
        printf '%s\n' 'text' '' '--retries'
    case 'call send:--leave-voicemail' 'call send:--no-leave-voicemail'
        printf '%s\n' '' '' '--leave-voicemail' '--no-leave-voicemail'
    case 'call send:--country-code'
        printf '%s\n' 'countries' '' '--country-code'
    case 'call bulk:-m' 'call bulk:--message'
        printf '%s\n' 'text' '' '-m' '--message'
    case 'call bulk:--message-file'
        printf '%s\n' 'files' '' '--message-file'
    case 'call bulk:--voice'
        printf '%s\n' '=Marian Penelope Conchita Mia Lucia Enrique Miguel' '' '--voice'
    case 'call bulk:--audio-code'
        printf '%s\n' 'text' '' '--audio-code'
    case 'call bulk:--retries'
        printf '%s\n' 'text' '' '--retries'
    case 'call bulk:--leave-voicemail' 'call bulk:--no-leave-voicemail'
        printf '%s\n' '' '' '--leave-voicemail' '--no-leave-voicemail'
    case 'call bulk:--country-code'
        printf '%s\n' 'countries' '' '--country-code'
    case 'call bulk:--phone-column'
        printf '%s\n' 'text' '' '--phone-column'
    case 'call bulk:--skip-invalid'
        printf '%s\n' '' '' '--skip-invalid'
    case 'call bulk:--batch-size'
        printf '%s\n' 'text' '' '--batch-size'
    case 'call bulk:--concurrency'
        printf '%s\n' 'text' '' '--concurrency'
    case 'call bulk:--rate'
        printf '%s\n' 'text' '' '--rate'
    case 'call bulk:--max-credits'
        printf '%s\n' 'text' '' '--max-credits'
    case 'chatapp send:--template'
        printf '%s\n' 'text' '' '--template'
    case 'chatapp send:--body'
        printf '%s\n' 'files' '' '--body'
    case 'chatapp order:--template'
        printf '%s\n' 'text' '' '--template'
    case 'chatapp order:--body'
        printf '%s\n' 'files' '' '--body'
    case 'chatapp bulk:--template'
        printf '%s\n' 'text' '' '--template'
    case 'chatapp bulk:--phone-column'
        printf '%s\n' 'text' '' '--phone-column'
    case 'chatapp bulk:--skip-invalid'
        printf '%s\n' '' '' '--skip-invalid'
    case 'chatapp bulk:--concurrency'
        printf '%s\n' 'text' '' '--concurrency'
    case 'chatapp bulk:--rate'
        printf '%s\n' 'text' '' '--rate'
    case 'chatapp bulk:--max-credits'
        printf '%s\n' 'text' '' '--max-credits'
    case 'job resume:--resend-unknown'
        printf '%s\n' '' '' '--resend-unknown'
    case 'job resume:--resend-refused'
        printf '%s\n' '' '' '--resend-refused'
    case 'job resume:--concurrency'
        printf '%s\n' 'text' '' '--concurrency'
    case 'job resume:--rate'
        printf '%s\n' 'text' '' '--rate'
    case 'job resume:--max-credits'
        printf '%s\n' 'text' '' '--max-credits'
    case 'job report:--only'
        printf '%s\n' '=accepted refused unknown pending invalid duplicate' '' '--only'
    case 'job states:--concurrency'
        printf '%s\n' 'text' '' '--concurrency'
    case 'job states:--rate'
        printf '%s\n' 'text' '' '--rate'
    case '2fa send-sms:--app-name'
        printf '%s\n' 'text' '' '--app-name'
    case '2fa send-sms:--country-code'
        printf '%s\n' 'countries' '' '--country-code'
    case '2fa send-call:--app-name'
        printf '%s\n' 'text' '' '--app-name'
    case '2fa send-call:--voice'
        printf '%s\n' '=Mariana Penelope Conchita Mia Lucia Enrique Miguel' '' '--voice'
    case '2fa send-call:--retries'
        printf '%s\n' 'text' '' '--retries'
    case '2fa send-call:--country-code'
        printf '%s\n' 'countries' '' '--country-code'
    case '2fa send-chatapp:--app-name'
        printf '%s\n' 'text' '' '--app-name'
    case '2fa send-chatapp:--template'
        printf '%s\n' 'text' '' '--template'
    case '2fa send-chatapp:--country-code'
        printf '%s\n' 'countries' '' '--country-code'
    case '2fa verify:--app-name'
        printf '%s\n' 'text' '' '--app-name'
    case '2fa verify:--code'
        printf '%s\n' 'text' '' '--code'
    case '2fa verify:--country-code'
        printf '%s\n' 'countries' '' '--country-code'
    case 'state get:--last'
        printf '%s\n' '' '' '--last'
    case 'state watch:--until'
        printf '%s\n' 'text' '1' '--until'
    case 'state watch:--interval'
        printf '%s\n' 'text' '' '--interval'
    case 'state watch:--max-wait'
        printf '%s\n' 'text' '' '--max-wait'
    case 'url shorten:--name'
        printf '%s\n' 'text' '' '--name'
    case 'url shorten:--alias'
        printf '%s\n' 'text' '' '--alias'
    case 'url shorten:--premium'
        printf '%s\n' '' '' '--premium'
    case 'url shorten:--group-name'
        printf '%s\n' 'text' '' '--group-name'
    case 'url shorten:--domain-name'
        printf '%s\n' 'text' '' '--domain-name'
    case 'url shorten:--expiration-months'
        printf '%s\n' 'text' '' '--expiration-months'
    case 'url stats:--since'
        printf '%s\n' 'text' '' '--since'
    case 'url stats:--until'
        printf '%s\n' 'text' '' '--until'
    case 'url stats:--category'
        printf '%s\n' '=date hour country device operatingSystem region city brand model browser lang' '' '--category'
    case 'history:--since'
        printf '%s\n' 'text' '' '--since'
    case 'history:--phone'
        printf '%s\n' 'text' '' '--phone'
    case 'history:--limit'
        printf '%s\n' 'text' '' '--limit'
    case 'history list:--since'
        printf '%s\n' 'text' '' '--since'
    case 'history list:--phone'
        printf '%s\n' 'text' '' '--phone'
    case 'history list:--limit'
        printf '%s\n' 'text' '' '--limit'
    case 'balance check:--min'
        printf '%s\n' 'text' '' '--min'
    case 'block add:--name'
        printf '%s\n' 'text' '' '--name'
    case 'block bulk:--name'
        printf '%s\n' 'text' '' '--name'
    case 'block bulk:--phone-column'
        printf '%s\n' 'text' '' '--phone-column'
    case 'block bulk:--skip-invalid'
        printf '%s\n' '' '' '--skip-invalid'
    case 'block bulk:--concurrency'
        printf '%s\n' 'text' '' '--concurrency'
    case 'block bulk:--rate'
        printf '%s\n' 'text' '' '--rate'
    case 'profile add:--base-url'
        printf '%s\n' 'text' '' '--base-url'
    case 'profile add:--client'
        printf '%s\n' 'text' '' '--client'
    case 'profile add:--key-stdin'
        printf '%s\n' '' '' '--key-stdin'
    case 'profile add:--key-command'
        printf '%s\n' 'text' '' '--key-command'
    case 'profile add:--country-code'
        printf '%s\n' 'countries' '' '--country-code'
    case 'profile add:--app-name'
        printf '%s\n' 'text' '' '--app-name'
    case 'profile add:--voice'
        printf '%s\n' '=Marian Penelope Conchita Mia Lucia Enrique Miguel Mariana' '' '--voice'
    case 'profile add:--allow-http'
        printf '%s\n' '' '' '--allow-http'
    case 'profile add:--check'
        printf '%s\n' '' '' '--check'
    case 'profile add:--force'
        printf '%s\n' '' '' '--force'
    case 'api:-f' 'api:--form'
        printf '%s\n' 'text' '1' '-f' '--form'
    case 'api:-q' 'api:--query'
        printf '%s\n' 'text' '1' '-q' '--query'
    case 'api:--input'
        printf '%s\n' 'files' '' '--input'
    case 'api:-i' 'api:--include'
        printf '%s\n' '' '' '-i' '--include'
    case 'api:--quiet'
        printf '%s\n' '' '' '--quiet'
    case 'sandbox serve:--port'
        printf '%s\n' 'text' '' '--port'
    case 'sandbox serve:--host'
        printf '%s\n' 'text' '' '--host'
    case 'sandbox serve:--client'
        printf '%s\n' 'text' '' '--client'
    case 'sandbox serve:--key'
        printf '%s\n' 'text' '' '--key'
    case 'sandbox serve:--credits'
        printf '%s\n' 'text' '' '--credits'
    case 'sandbox serve:--state'
        printf '%s\n' 'files' '' '--state'
    case 'sandbox serve:--allow-ip'
        printf '%s\n' 'text' '1' '--allow-ip'
    case 'sandbox serve:--fault'
        printf '%s\n' '=520 503 429 html delay= drop reject truncate garbage' '1' '--fault'
    case 'sandbox serve:--seed'
        printf '%s\n' 'text' '' '--seed'
    case 'sandbox inbox:--kind'
        printf '%s\n' '=sms call chatapp' '' '--kind'
    case 'sandbox inbox:--follow'
        printf '%s\n' '' '' '--follow'
    case 'sandbox inbox:--base-url'
        printf '%s\n' 'text' '' '--base-url'
    case 'sandbox click:--count'
        printf '%s\n' 'text' '' '--count'
    case 'sandbox click:--country'
        printf '%s\n' 'countries' '' '--country'
    case 'sandbox click:--region'
        printf '%s\n' 'text' '' '--region'
    case 'sandbox click:--city'
        printf '%s\n' 'text' '' '--city'
    case 'sandbox click:--device'
        printf '%s\n' 'text' '' '--device'
    case 'sandbox click:--brand'
        printf '%s\n' 'text' '' '--brand'
    case 'sandbox click:--model'
        printf '%s\n' 'text' '' '--model'
    case 'sandbox click:--operating-system'
        printf '%s\n' 'text' '' '--operating-system'
    case 'sandbox click:--browser'
        printf '%s\n' 'text' '' '--browser'
    case 'sandbox click:--lang'
        printf '%s\n' 'text' '' '--lang'
    case 'sandbox click:--days'
        printf '%s\n' 'text' '' '--days'
    case 'sandbox click:--base-url'
        printf '%s\n' 'text' '' '--base-url'
    case 'sandbox credit:--base-url'
        printf '%s\n' 'text' '' '--base-url'
    case 'sandbox reset:--base-url'
        printf '%s\n' 'text' '' '--base-url'
    case '*:-p' '*:--profile'
        printf '%s\n' 'profiles' '' '-p' '--profile'
    case '*:--json'
        printf '%s\n' '' '' '--json'
    case '*:-o' '*:--output'
        printf '%s\n' '=table json csv tsv' '' '-o' '--output'
    case '*:--fields'
        printf '%s\n' 'text' '' '--fields'
    case '*:-n' '*:--dry-run'
        printf '%s\n' '' '' '-n' '--dry-run'
    case '*:-y' '*:--yes'
        printf '%s\n' '' '' '-y' '--yes'
    case '*:-q' '*:--quiet'
        printf '%s\n' '' '' '-q' '--quiet'
    case '*:-v' '*:--verbose'
        printf '%s\n' '' '' '-v' '--verbose'
    case '*:--timeout'
        printf '%s\n' 'text' '' '--timeout'
    case '*:--no-color'
        printf '%s\n' '' '' '--no-color'
    case '*:-h' '*:--help'
        printf '%s\n' '' '' '-h' '--help'
    case '*:-V' '*:--version'
        printf '%s\n' '' '' '-V' '--version'
    case '*'
        printf '%s\n' '' '' $argv[2]
    end
end

# The values of the argument number $argv[2] of the command $argv[1].
function __msgctl_argument
    switch "$argv[1]:$argv[2]"
    case 'sms bulk:1'
        echo 'files'
    case 'call bulk:1'
        echo 'files'
    case 'chatapp bulk:1'
        echo 'files'
    case 'job show:1'
        echo 'jobs'
    case 'job resume:1'
        echo 'jobs'
    case 'job report:1'
        echo 'jobs'
    case 'job states:1'
        echo 'jobs'
    case 'job remove:1'
        echo 'jobs'
    case 'block bulk:1'
        echo 'files'
    case 'profile show:1'
        echo 'profiles'
    case 'profile use:1'
        echo 'profiles'
    case 'profile remove:1'
        echo 'stored'
    case 'api:1'
        echo '=GET POST PUT PATCH DELETE'
    case 'api:2'
        echo '=/balance /block-phone /send-sms /call/send /messages-state /2fa/send-sms /call/2fa/send-call /2fa/verification-code /url/short /url/short-statistic /chatapp/send /chatapp/store/order /2fa/send-chatapp'
    case 'completion:1'
        echo '=bash zsh fish'
    end
end

function __msgctl_countries
    string match -ar '[A-Z]+' '
    AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV BW BY BZ CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO FR GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP KE KG KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY QA RE RO RS RU RW SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG UM US UY UZ VA VC VE VG VI VN VU WF WS YE YT ZA ZM ZW
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
