"""The outcome of a request, from the response of the service: certain, or unknown.

A success counts only if every word is known. Everything else is unknown, because a wrong guess would lose a message or
send it twice. `words` contains the words, `judge` the rules, and `record` the forms of a response.
"""
