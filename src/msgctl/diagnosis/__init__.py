"""Why it does not work: what a request needs, checked step by step, each with what was found and what to do.

`settings` checks what is on this machine, `network` the way to the service, `account` what the service says;
`examination` makes the checks in their order.
"""
