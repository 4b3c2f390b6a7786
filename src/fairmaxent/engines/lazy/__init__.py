"""Lazy engines: values, levels and distinct rows found by the engine that holds the rows."""
