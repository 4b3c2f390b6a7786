"""Rows wherever they are: in memory, in a lazy engine, or on a cluster."""
