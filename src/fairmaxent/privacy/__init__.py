"""A fit under differential privacy: noisy tables, and a model of the table that is made of nothing else.

Reading order: `budget` (what may be learned about one person), `ledger` (what was spent), `mechanisms` (the noise),
`measurements` (which tables are counted), `edges` (which pairs of columns), `repair` (from noisy counts to
distributions), `model` (the private model) and `population` (rows drawn from it, which the rest of a fit works with).
"""
