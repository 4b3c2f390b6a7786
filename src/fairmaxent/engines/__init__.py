"""Rows wherever they are: in memory, in a lazy engine (polars, DuckDB, Dask, Spark), or
on a cluster.
"""
