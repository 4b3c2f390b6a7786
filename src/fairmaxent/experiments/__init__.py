"""The paper's experiments, written with public names: Table 2, and every figure. A
*cell* is a method on a fold.
"""
