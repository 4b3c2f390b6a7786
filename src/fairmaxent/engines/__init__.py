"""Tables that are never in memory: polars LazyFrames, DuckDB relations, and any lazy frame that narwhals understands.

The engine that holds the table does the work over rows: it lists the values of each column (`values`), codes and
counts the rows (`coding`, `rows`). What comes back is small: distinct values, and distinct rows with their counts.
"""
