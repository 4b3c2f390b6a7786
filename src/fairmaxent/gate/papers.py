"""The documents that people must file: each part of `papers.toml` is filled from a fit,
or says who must write it.
"""

import hashlib
import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fairmaxent.document import Block, Document, Listing, Note, Section, Table
from fairmaxent.document.text import to_markdown
from fairmaxent.document.words import percent
from fairmaxent.errors import InputError, Option, StorageError, did_you_mean
from fairmaxent.fairness.rates import Grouping, group_table
from fairmaxent.fit.certified import Certified
from fairmaxent.fit.groups import group_changes
from fairmaxent.plain_text import json_text, visible

TEMPLATES: dict[str, Any] = tomllib.loads(
    Path(__file__).with_name("papers.toml").read_text(encoding="utf-8")
)
_SMALL = 0.02  # of all people; a category below it may be left out of an audit
_BOTH = "{} in the data, {} in the result."
_TYPES = {"numeric": "sc:Float", "date": "sc:Date"}
Facts = Mapping[str, list[Any]]  # sentences, or tables


def document(
    fit: Certified, kind: str, data: str | os.PathLike[str] | None = None
) -> str:
    """Write a document about a fit; ``data`` is the file of the fair table, which a
    Croissant document describes.
    """
    if kind not in TEMPLATES:
        raise InputError(
            f"there is no document {kind!r}; {did_you_mean(kind, TEMPLATES)}"
        )
    is_unclear = (
        fit.request.favourable is None and fit.roles.attributes[0].kind != "numeric"
    )
    if kind == "ll144" and (is_unclear or fit.request.privacy is not None):
        raise InputError(
            "an audit counts who was selected; name ",
            Option("favourable"),
            ", and do not fit privately",
        )
    if data is not None and (
        kind != "croissant" or not os.fspath(data).lower().endswith(".csv")
    ):
        raise InputError(
            "only a Croissant document describes a table, and that a CSV file; leave ",
            Option("data"),
            " out",
        )
    template = TEMPLATES[kind]
    facts = _facts(fit)
    if kind == "croissant":
        return json_text(_croissant(fit, template, facts, data)) + "\n"
    sections = tuple(
        Section(
            f"part-{number}", part["title"], part["title"], tuple(_filled(part, facts))
        )
        for number, part in enumerate(template["parts"])
    )
    filing = (("Certificate (SHA-256)", fit.certificate.digest),)
    text = to_markdown(
        Document(
            "Document", template["title"], filing, template["note"], sections, (), ""
        )
    )
    if "head" not in template:
        return text
    head = template["head"] | {
        "pretty_name": _name(fit),
        "certificate": fit.certificate.digest,
    }
    # JSON is YAML, too, whatever the names of columns hold.
    return "\n".join(
        [
            "---",
            *(f"{key}: {json_text(value, indent=0)}" for key, value in head.items()),
            "---",
            "",
            text,
        ]
    )


def _filled(part: Mapping[str, Any], facts: Facts) -> Iterator[Block]:
    """What is known about a part, and who must write the rest."""
    for found in (facts[name] for name in part.get("facts", ())):
        if sentences := tuple(fact for fact in found if isinstance(fact, str)):
            yield Listing(sentences)
        yield from (fact for fact in found if not isinstance(fact, str))
    if "write" in part:
        yield Note(f"To be written by {part['write']}")


def _name(fit: Certified) -> str:
    return visible(
        f"{' and '.join(fit.roles.outcome_names)} by"
        f" {', '.join(fit.roles.protected_names)}, made fair"
    )


def _facts(fit: Certified) -> Facts:
    """Everything that a document can say, by name."""
    certificate = fit.certificate
    roles = fit.roles
    asked: Any = fit.request
    names = ", ".join(fit.columns)
    wanted = [rate for rate in certificate.rate_lines if rate.wanted is not None]
    changes = group_changes(fit)
    shares = {
        change.name: (change.share_before, change.share_after) for change in changes
    }
    axes = tuple(range(1, 1 + len(roles.protected)))
    # each protected column, and their intersections
    groupings = dict.fromkeys([*((axis,) for axis in axes), axes])
    impact, unknown = zip(
        *(_impact(fit, grouping) for grouping in groupings), strict=True
    )
    return {
        "table": [
            f"The table has {certificate.rows:,} rows and {len(fit.columns)} columns:"
            f" {names}."
        ],
        "asked": (
            [f"Asked for: {rate.label} at least {rate.wanted:g}." for rate in wanted]
            + list(asked.words())
        ),
        "rates": [
            f"{rate.label}: {rate.before:.3f} in the data, {rate.reached:.3f} in the"
            " result."
            for rate in wanted
        ],
        "groups": [
            f"{name}: {_BOTH.format(*map(percent, pair))}"
            for name, pair in shares.items()
        ],
        "rates_of_groups": [
            f"{one.name} have {one.about}:"
            f" {_BOTH.format(percent(one.rate_before), percent(one.rate_after))}"
            for one in changes
        ],
        "prepared": (
            [*certificate.notes]
            + [f"Left out: {name}." for name in certificate.left_out_columns]
        ),
        "costs": [
            f"The weights are worth {certificate.effective_rows:,.0f} of"
            f" {certificate.rows:,} rows."
        ],
        "warnings": [*certificate.warnings] or ["The certificate warns of nothing."],
        "protected": [
            f"Columns whose groups are compared: {', '.join(roles.protected_names)}."
        ],
        "privacy": [f"Privacy: {asked.privacy or 'no guarantee is given'}."],
        **{"impact": list(impact), "unknown": list(unknown)},
    }


def _impact(fit: Certified, axes: Grouping) -> tuple[Table, str]:
    """Rates and impact ratios of the people in the data, and how many are in no
    category because it is unknown.
    """
    outcome, *columns = (fit.roles.attributes[axis] for axis in (0, *axes))
    people = group_table(fit.problem.cells("rows"), axes)
    for axis, attribute in enumerate((outcome, *columns)):
        if attribute.missing is not None:
            np.moveaxis(people, axis, 0)[attribute.missing] = 0.0
    good = list(fit.problem.measure.favourable)
    heads = ("Selected", "Selection rate")
    # a score: who is above the median of all
    if outcome.kind == "numeric" and fit.request.favourable is None:
        scores = (
            fit.problem.cells("rows")
            .reshape(len(people), -1)
            .sum(axis=1)[: outcome.missing]
        )
        running = np.cumsum(scores)
        good = list(
            range(1 + int(np.searchsorted(running, running[-1] / 2)), len(scores))
        )
        heads = (
            "Above the median" if outcome.is_value_coded else "Above the median's bin",
            "Scoring rate",
        )
    counts = people.sum(axis=0)
    chosen = people[good].sum(axis=0)
    rates = np.divide(chosen, counts, out=np.zeros_like(chosen), where=counts > 0)
    rows = tuple(
        (
            " × ".join(
                column.labels[level]
                for column, level in zip(columns, group, strict=True)
            ),
            f"{counts[group]:,.0f}",
            f"{chosen[group]:,.0f}",
            percent(float(rates[group])),
            f"{rates[group] / rates.max():.3f}" if rates.max() else "–",
            "under 2 %" if counts[group] < _SMALL * counts.sum() else "–",
        )
        for group in map(tuple, np.argwhere(counts > 0).tolist())
    )
    name = " × ".join(column.name for column in columns)
    table = Table(
        f"Impact ratios by {name}",
        (name, "People", *heads, "Impact ratio", "Small"),
        rows,
    )
    left_out = fit.problem.cells("rows").sum() - counts.sum()
    return (
        table,
        (
            f"{name}: {left_out:,.0f} people are not in the table: their category or"
            " outcome is unknown."
        ),
    )


def _croissant(
    fit: Certified, template: Any, facts: Facts, data: str | os.PathLike[str] | None
) -> dict[str, Any]:
    """JSON-LD: the parts are properties; of a file, also its digest and its columns."""
    record = {
        **template["head"],
        "name": _name(fit),
        "alternateName": template["title"],
    }
    for part in template["parts"]:
        blocks: Iterable[Any] = _filled(part, facts)
        texts = [text for block in blocks for text in block.items or (block.lead,)]
        record[part["title"]] = " ".join(map(visible, texts))
    record["rai:dataReleaseMaintenancePlan"] = (
        f"Certificate of the fit (SHA-256): {fit.certificate.digest}"
    )
    if data is None:
        return record
    try:
        with open(data, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as problem:
        raise StorageError(
            f"cannot read {data}: {problem.strerror}; check its path"
        ) from problem
    place = {
        "@type": "cr:FileObject",
        "@id": "table",
        "name": "table",
        "contentUrl": os.path.basename(data),
    }
    source = {"fileObject": {"@id": "table"}}
    fields = [
        {"@type": "cr:Field", "@id": f"rows/{number}", "name": visible(column.name)}
        | {
            "dataType": _TYPES.get(column.kind, "sc:Text"),
            "source": source | {"extract": {"column": column.name}},
        }
        for number, column in enumerate(fit.domain.attributes)
    ]
    record["distribution"] = [{**place, "encodingFormat": "text/csv", "sha256": digest}]
    record["recordSet"] = [
        {"@type": "cr:RecordSet", "@id": "rows", "name": "rows", "field": fields}
    ]
    return record
