"""A fit under differential privacy: noisy tables, and a model of the table that is made
of nothing else.
"""
