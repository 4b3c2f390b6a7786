"""Fairness: rates and the fair table; mathematics of one tiny table, without priors."""
