"""Maximum entropy: features, priors, duals, search, solvers, reach and the optimum.

A prior is anything that can be tilted. One search minimises two duals: that of a prior
whose features are to have given averages (`dual`), and that of rows whose weights
change by factors within bounds (`bounded`). Where it fails, linear programs say what
weights can `reach`.
"""
