"""The paper's experiments, written with public names of the library: Table 2, and every figure.

One *cell* is one method on one fold of one data set. Reading order: `plan` (which cells), `data` (the sets and their
folds), `cells` (one cell: learn, measure, store), then what is shown: `reasons` (published numbers beside ours),
`figures`, `page`; and `reproduce`, which runs all cells in parallel and does the rest.
"""
