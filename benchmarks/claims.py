"""Claims of speed and memory in README and docs: filled in from the results, never by
hand.

A page marks where they go by ``<!-- measured: NAME -->`` and ``<!-- measured: end
-->``; what stands between is written here. ``{subject|bar}`` is what was measured for a
bar, ``{subject|row|column}`` a cell of one of the subject's tables.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.outofcore import ADDRESS_SPACE, THREADS
from benchmarks.page import show

PAGES = (
    "README.md",
    "docs/choosing.md",
    "docs/questions/clusters.md",
    "docs/questions/large-tables.md",
    "docs/questions/models.md",
    "paper.md",
)
FIELD = Path(__file__).with_name("field.md")  # whose headings count what we lose

_PLACE = re.compile(r"(<!-- measured: (\w+) -->\n).*?(<!-- measured: end -->)", re.S)
_FIELD = re.compile(r"\{([^{}]+)\}")

CLAIMS = {
    "speed": (
        """
- A census table with 14 columns, from a frame in memory to 10,000 fair rows: {engine|Adult, full width: CPU} CPU
  seconds.
- The paper's data: {engine|COMPAS small: times less CPU than the authors' code}, {engine|Adult: times less CPU than the
  authors' code} and {engine|COMPAS large: times less CPU than the authors' code} times less CPU than the authors' code.
- {million|distinct rows|measured} distinct rows, {million|features|measured} features: the solve costs {million|Whole
  solve} passes over the rows.
- 10,000,000 rows of Parquet: {outofcore|Whole fit, in group-bys of polars} times the CPU of polars' own group-by of the
  same columns, and at most {outofcore|Peak memory of the fit} MB for the fit, {outofcore|whole command|peak MB} MB for
  the whole command; new rows are drawn and written at {outofcore|Rows drawn and written} per CPU second.
"""
    ),
    "paper": (
        """
New rows of the census table Adult, in the paper's five columns, have both rates up to whole rows. Others do other jobs on
the same table, so these are no races: AIF360's optimised pre-processing takes {alternatives|AIF360 OptimPreproc, fit|× ours} times the CPU of
`fairmaxent`, SMOTENC of imbalanced-learn {alternatives|imbalanced-learn SMOTENC|× ours} times, and mirror descent of
private-pgm {alternatives|mbi MirrorDescent|× ours} times; AIF360's reweighing, which gives weights for one rate only,
takes {alternatives|AIF360 Reweighing|× ours} times as much. On the paper's data a fit takes
{engine|COMPAS small: times less CPU than the authors' code}, {engine|Adult: times less CPU than the authors' code} and
{engine|COMPAS large: times less CPU than the authors' code} times less CPU than the authors' code.
{million|distinct rows|measured} distinct rows with {million|features|measured} features are solved in
{million|Whole solve} passes over the rows.
"""
    ),
    "field": (
        """
On public tables, with a logistic regression or a tree that sees the group or not, `model=` missed the rate by more than a
standard error in {field|The rate is missed by more than a standard error} cells. In {field|Another method is more accurate
by 0.005 and fairer by 0.01}, another method was more accurate by 0.005 and fairer by 0.01.
`benchmarks/field.md` names them first.
"""
    ),
    "large": (
        """
Extrapolated from small tables, not run: 500 GB of nearly distinct rows take ten machines of 32 cores {large|nearly all rows
distinct, Dask, two workers|hours} hours with Dask, {large|nearly all rows distinct, Spark local[2]|hours} with Spark, without
the network.
"""
    ),
    "memory": (
        f"""
On 10,000,000 rows × 14 columns the complete command, from Parquet to Parquet, used at most {{outofcore|whole
command|peak MB}} MB with {{outofcore|whole command|distinct rows}} distinct rows, and {{outofcore|whole command, few
distinct rows|peak MB}} MB with {{outofcore|whole command, few distinct rows|distinct rows}}: {{outofcore|one more
distinct row|bytes}} bytes for each additional distinct row.

It ran with {THREADS} threads and an address space limited to {ADDRESS_SPACE:,.0f} MB. That is enough for any table with
as many columns and distinct rows, however many rows it has. In the shell, set these limits with
`ulimit -v {ADDRESS_SPACE * 1000:.0f}` and `export POLARS_MAX_THREADS={THREADS}`.
"""
    ),
}


def fill(root: Path, records: Mapping[str, Any]) -> None:
    """Write the claims into every page."""
    for page in PAGES:
        path = root / page
        path.write_text(
            filled(path.read_text(encoding="utf-8"), records), encoding="utf-8"
        )


def filled(text: str, records: Mapping[str, Any]) -> str:
    """A page with what the records say."""
    return _PLACE.sub(
        lambda found: f"{found[1]}{claim(found[2], records)}{found[3]}", text
    )


def claim(name: str, records: Mapping[str, Any]) -> str:
    """One block of claims."""
    return _FIELD.sub(
        lambda found: measured(" ".join(found[1].split()), records),
        CLAIMS[name].lstrip("\n"),
    )


def measured(field: str, records: Mapping[str, Any]) -> str:
    """What the records say of a field, as it is shown on the page of the results."""
    subject, name, *column = field.split("|")
    if subject == "field":
        return lost(name)
    record = records[subject]
    for bar in record["bars"]:
        if [bar["name"], *column] == [name] and bar["measured"] is not None:
            return show(bar["measured"])
    for table in record["tables"]:
        for first, *rest in table["rows"]:
            if first == name and column and column[0] in table["columns"][1:]:
                return show(rest[table["columns"][1:].index(column[0])])
    raise KeyError(
        f"nothing was measured for {field!r}; look at the claims and at the results"
    )


def lost(what: str) -> str:
    """In how many cells of the field we lose in some way, as its page says."""
    found = re.search(
        rf"(?m)^### {re.escape(what)}: (\d+ of \d+) cells$",
        FIELD.read_text(encoding="utf-8"),
    )
    if found is None:
        raise KeyError(f"{FIELD.name} has no heading {what!r}")
    return found[1]
