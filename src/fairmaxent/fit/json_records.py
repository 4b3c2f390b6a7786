"""The request and the certificate of a fit as JSON records, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from numbers import Real
from typing import Any

import numpy as np

from fairmaxent.data.arrays import Reals
from fairmaxent.data.column_storage import Record
from fairmaxent.data.roles import RedrawnValues
from fairmaxent.fairness.measure import Measure
from fairmaxent.fit.certificate import Certificate
from fairmaxent.fit.costs import Costs
from fairmaxent.fit.estimate import Deferred, ModelEstimate, ModelScores
from fairmaxent.fit.facts import (
    BinnedColumn,
    ForbiddenRows,
    GroupMean,
    MissingValues,
    OutcomeShare,
    SingleGroup,
    SmallGroup,
)
from fairmaxent.fit.plans import Estimate, PaperRequest, Relabel
from fairmaxent.fit.relabel import DecidedRate, DecidedShare, Decisions
from fairmaxent.fit.request import Request
from fairmaxent.fit.target import FREE
from fairmaxent.privacy.budget import Ledger, Privacy

_FACTS = {
    "small_groups": SmallGroup,
    "binned_columns": BinnedColumn,
    "kept_missing": MissingValues,
    "single_groups": SingleGroup,
    "means": GroupMean,
    "forbidden_rows": ForbiddenRows,
    "outcome_shares": OutcomeShare,
}


def pack_request(request: Request | PaperRequest) -> Record:
    """Return a record from which `unpack_request` restores the request; models inside it are not kept."""
    values = {
        option.name: getattr(request, option.name) for option in fields(request) if option.init and option.compare
    }
    if isinstance(request, PaperRequest):
        return {"kind": "paper", "options": _tag(values)}
    plans = {name: _without_models(values.pop(name)) for name in ("relabel", "estimate")}
    privacy = values.pop("privacy")
    plans["privacy"] = None if privacy is None else {"epsilon": privacy.epsilon, "delta": privacy.delta}
    return {"kind": "debias", "options": _tag(values), **plans}


def unpack_request(record: Record) -> Request | PaperRequest:
    """Restore what `pack_request` wrote; options that make no sense are refused as they are in a call."""
    values = _untag(record["options"])
    kind = {"paper": PaperRequest, "debias": Request}[record["kind"]]
    stored = {option.name for option in fields(kind) if option.init and option.compare}
    if not values.keys() <= stored:
        raise ValueError("the request has options that do not belong there")
    if kind is PaperRequest:
        return PaperRequest(**values)
    relabel, estimate, privacy = record["relabel"], record["estimate"], record.get("privacy")
    if "missing" not in values:
        values |= _older_meaning(values, relabelled=relabel is not None)
    return Request(
        **values,
        relabel=Relabel(**relabel) if isinstance(relabel, dict) else relabel,
        estimate=Estimate(**estimate) if isinstance(estimate, dict) else estimate,
        privacy=None if privacy is None else Privacy(**privacy),
    )


def _older_meaning(values: Mapping[str, Any], *, relabelled: bool) -> dict[str, Any]:
    """What a request meant before `missing` existed: missing was a group, and reweighing moved the outcome's share."""
    target = dict(values.get("target") or {})
    return {"missing": "compare", "target": (target if relabelled else {values["outcome"]: FREE} | target) or None}


def _without_models(plan: Any) -> Any:
    """A choice by its name stays; of a record, classifiers are left out, unless they were named."""
    if plan is None or isinstance(plan, str):
        return plan
    return {
        name: None if name in ("labeller", "student") and not isinstance(value, str) else value
        for name, value in vars(plan).items()
    }


def pack_certificate(certificate: Certificate) -> Record:
    """Return a record from which `unpack_certificate` restores the certificate, but for its table.

    An estimate that nobody has asked for so far is not made for this.
    """
    estimated = certificate.estimated
    pending = isinstance(estimated, Deferred) and not estimated.is_done
    known = replace(certificate, estimated=None) if pending else certificate
    return {"values": _tag(known.values()), "measure": _tag(asdict(certificate.measure))}


def unpack_certificate(record: Record, table: Reals) -> Certificate:
    """Restore what `pack_certificate` wrote."""
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in _untag(record["values"]).items()
    }
    for name, kind in _FACTS.items():
        values[name] = tuple(kind(**_tuples(fact)) for fact in values.get(name, ()))
    if values.get("redrawn") is not None:
        values["redrawn"] = RedrawnValues(**_tuples(values["redrawn"]))
    if values.get("privacy") is not None:
        values["privacy"] = Ledger.from_dict(values["privacy"])
    if values.get("costs") is not None:
        values["costs"] = Costs.from_dict(values["costs"])
    values["estimated"] = _unpack_estimate(values.pop("estimate", None))
    if values.get("decisions") is not None:
        values["decisions"] = _unpack_decisions(values["decisions"])
    measure = _untag(record["measure"])
    return Certificate(
        **values,
        measure=_measure(measure),
        table=table,
    )


def _measure(record: Mapping[str, Any]) -> Measure:
    return Measure(
        tuple(map(tuple, record["groupings"])),
        tuple(record["names"]),
        tuple(record["favourable"]),
        tuple(map(tuple, record.get("left_out", ()))),
        record.get("strata", 0),
        tuple(map(tuple, record.get("outside", ()))),
        tuple((axis, tuple(levels)) for axis, levels in record.get("others", ())),
        tuple(record.get("columns", ())),
    )


def _unpack_estimate(record: Mapping[str, Any] | None) -> ModelEstimate | None:
    if record is None:
        return None
    return ModelEstimate(**{**record, **{when: _unpack_scores(record[when]) for when in ("before", "after")}})


def _unpack_scores(record: Mapping[str, Any]) -> ModelScores:
    ranges = {
        quantity: {name: None if span is None else tuple(span) for name, span in by_name.items()}
        for quantity, by_name in record.get("ranges", {}).items()
    }
    return ModelScores(**{**record, "ranges": ranges})


def _unpack_decisions(record: Mapping[str, Any]) -> Decisions:
    rates = tuple(DecidedRate(**rate) for rate in record["rates"])
    shares = tuple(DecidedShare(**share) for share in record["shares"])
    offsets = tuple(tuple(row) for row in record["offsets"])
    return Decisions(**{**record, "rates": rates, "shares": shares, "offsets": offsets})


def _tuples(fact: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in fact.items()}


def _tag(value: Any) -> Any:
    """Turn a user's value into JSON that keeps the keys of mappings as they are."""
    if isinstance(value, Mapping):
        return {"map": [[_tag(key), _tag(item)] for key, item in value.items()]}
    if isinstance(value, set | frozenset):
        return _tag(sorted(value, key=repr))
    if isinstance(value, list | tuple):
        return {"list": [_tag(item) for item in value]}
    if isinstance(value, np.floating):
        return float(value)  # a longdouble's own item() is a longdouble
    if isinstance(value, np.generic):
        return _tag(value.item())
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Real):  # a Fraction, say
        return float(value)
    return str(value)


def _untag(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if "map" in value:
        return {_untag(key): _untag(item) for key, item in value["map"]}
    return [_untag(item) for item in value["list"]]
