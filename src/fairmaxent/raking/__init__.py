"""Raking: weights for known margins.

The weights of the rows change as little as possible, in the sense of the Kullback–Leibler divergence, so that the table
has the margins that a census or another source knows. `margins` reads what is known, `survey` what the rows have,
`problem` brings them together, `factors` finds the factor of each cell, `conflict` names margins that contradict each
other, `certificate` states what was reached, and `raking` is the way from a frame to a `Raking`.
"""
