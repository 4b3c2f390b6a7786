"""Priors q: anything that can be tilted."""
