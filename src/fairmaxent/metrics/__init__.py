"""Metrics: what frames, predictions and models are like, with intervals."""
