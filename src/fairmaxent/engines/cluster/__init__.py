"""Tables too large for one machine: distinct rows in partitions that stay on the workers of a Dask cluster.

Each partition is an ordinary `Table`, and each distinct row is in exactly one of them (`counting`, `partitions`). So
every sum that a fit needs is the sum over the partitions, computed and merged on the workers (`tasks`). The rows as a
prior are the mixture of the partitions (`partitioned_rows`, `worker_prior`), a sample is drawn and written partition by
partition (`drawing`), and weights are computed where the rows are (`weighing`). Partitions are results of tasks, never
data sent to the workers, so Dask recomputes them if a worker is lost.

None of this is loaded for a table in memory.
"""
