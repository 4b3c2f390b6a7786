"""The paper's experiments, from public names of the library only: Table 2, and every figure.

One *cell* is one method on one fold of one data set. Reading order: `plan` (which cells), `data` (the sets and their
folds), `methods` (from training rows to a fair distribution), `evaluate` (what is measured on drawn rows), `cells` (one
cell, kept in a file), `run` (all of them, in parallel), `tables` (means), then what is shown: `published`, `reasons`,
`figures`, `page`; and `reproduce`, which does it all.
"""
