"""The paper's experiments, written with public names of the library: Table 2, and every figure.

One *cell* is one method on one fold of one data set. Reading order: `plan` (which cells), `data` (the sets and their
folds), `methods` (from training rows to a fair distribution), `evaluate` (what is measured on drawn rows), `cells` (one
cell, stored in a file), `run` (all cells, in parallel), `tables` (means), then what is shown: `published`, `reasons`,
`figures`, `page`; and `reproduce`, which does all of it.
"""
