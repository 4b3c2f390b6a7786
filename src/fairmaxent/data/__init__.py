"""Data: a user's table as levels, blocks and distinct rows, and back."""
