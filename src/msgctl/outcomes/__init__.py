"""The outcome of a request, from the response of the service: certain, or unknown.

Good news counts only if every word of it is known. Everything else is unknown, because a guessed word loses a message
or sends it twice. `words` contains the words, `judge` the rules, and `record` the forms of a response.
"""
