"""Reading and summing rows wherever they are: in memory, in a lazy engine, or on a cluster.

`reading` turns a frame into distinct rows with their counts. For a lazy frame (polars, DuckDB, Dask or Spark) the
engine that holds the rows does this work, and only small results come back (`lazy_frame`, `lazy_values`,
`lazy_counts`). With a Dask cluster even the distinct rows stay on the workers (`cluster_tasks`, `cluster_partitions`,
`cluster_output`); none of these is loaded for a table in memory. `rows` answers what a fit asks of the rows
in each case.
"""
