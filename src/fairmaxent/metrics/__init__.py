"""Metrics: how frames, predictions and models treat groups, with confidence intervals."""
