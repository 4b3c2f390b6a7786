"""Maximum entropy: a prior is anything that can be tilted; features, priors, dual,
solvers and the optimum.
"""
