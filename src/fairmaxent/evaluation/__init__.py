"""Rows judged before they are shared: how faithful they are, what they are good for,
and what they give away.
"""
