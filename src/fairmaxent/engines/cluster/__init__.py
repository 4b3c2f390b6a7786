"""Tables that fit no machine: distinct rows in partitions that stay on the workers of a Dask cluster.

Each partition is an ordinary `Table`, and no row is in two of them. So every sum that a fit asks for is the sum of
what the partitions say, merged on the workers (`workers`); rows as a prior are the mixture of each partition's
(`rows`); and a sample is drawn and written partition by partition (`drawing`). Partitions are results of tasks, never
data that was sent: what a lost worker held is computed again.

Nothing of it is loaded for a table in memory.
"""
