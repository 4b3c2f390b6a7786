"""Fit: from a request to a fitted distribution, its certificate and its three
outputs.
"""
