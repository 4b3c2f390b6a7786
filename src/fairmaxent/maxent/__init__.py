"""Maximum entropy: features, priors, dual, solvers and the optimum.

A prior is anything that can be tilted.
"""
