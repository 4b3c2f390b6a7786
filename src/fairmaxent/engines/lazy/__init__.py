"""Lazy engines: the engine that holds the rows lists the values of each column and counts the distinct rows.

`frame` opens a lazy frame and runs queries on it; `column_values` learns the domain from the distinct values of each
column; `level_expressions` writes the level of a row as an expression that the engine evaluates; `row_counts` counts
the distinct rows, and joins weights to them.
"""
