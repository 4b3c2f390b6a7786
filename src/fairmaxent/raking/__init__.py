"""Raking: weights for known margins.

The weights of the rows change as little as possible, in the sense of the Kullback–Leibler divergence, so that the table
has the margins that a census or another source knows. `margins` reads what is known, `cells` what the rows have, `dual`
and `solving` find the factor of each cell, `conflict` names margins that contradict each other, and `pipeline` is the
way from a frame to a `Raking`.
"""
