"""The outcome of a request, from the response of the service: certain, or unknown.

A success counts only if every word is known. Everything else is unknown, because a wrong guess would lose a message or
send it twice. One module answers each question: `judge` what was sent, `codes` whether a code is verified, `delivery`
whether a message arrived, and `balance` how many credits are left. `words` contains the lists of words, `content` the
meaning of values and fields, `numbers` the recipients, and `record` the forms of a response.
"""
