"""The outcome of a request, from the response of the service: certain, or unknown.

A success counts only if every word is known. Everything else is unknown, because a wrong guess would lose a message or
send it twice. Three modules decide about a response: `judge` decides about outcomes and the balance, `codes` decides
about verified codes, and `delivery` decides about delivery states. They use `words` for the lists of known words,
`content` for the meaning of values and fields, and `record` to check the form of a response.

To recognize another word, add it to one list in `words`. To change a rule, change its function: `judge._contradicts`
decides what keeps a response from being accepted, and `judge._Record.is_refused` what is a refusal. First add the
response with its outcome to ``phrases.jsonl`` or ``rules.jsonl`` in ``tests/rules``: the tests give every line to the
judge. The lines that fail afterwards show what else changes. A profile may add words (`AddedWords`) without any change.
"""
