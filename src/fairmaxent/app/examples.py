"""The example tables of the page, by their names in `fairmaxent.datasets`."""

from __future__ import annotations

EXAMPLES = {
    "adult": "Income in the US census of 1994",
    "german": "Credit in Germany",
    "compas": "Reoffending in Florida",
}
