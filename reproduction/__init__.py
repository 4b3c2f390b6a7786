"""The paper's experiments: Table 2, and every figure.

It is no part of the package: `make reproduce` runs a quick version from the root of the
repository, and `make reproduce-all` the whole. A *cell* is a method on a fold.
"""
