"""Rows wherever they are: in memory, in a lazy engine (polars, DuckDB, Dask, Spark), or on the workers of a cluster.

The engine that holds the rows does the work, and only small results come back; none of it is loaded for a table in
memory.
"""
