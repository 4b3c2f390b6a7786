"""Relabelling: profiles, models that label them, and soft labels tilted to the wanted
means.
"""
