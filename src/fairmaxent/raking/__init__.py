"""Raking: weights as close as possible to the old ones that give a table the margins
that a census knows.
"""
