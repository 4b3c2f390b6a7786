"""What there is to say about a fit, told once: each door takes what it has room for.

An entry is made from numbers and nothing else (`case`). The table of them all, in
reading order, is in `entries`; every door chooses from it by weight and topic, never by
name: so no door can forget a warning. Options are spelled as the door's users type
them.
"""
