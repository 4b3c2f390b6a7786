"""A fit in one file: JSON for names, arrays for numbers, never pickle.

Only what cannot be made again is stored; features, weights and the prior follow. So
does the certificate: the stored one must state the same. What was learned by training a
model is checked for its form and its ranges only. Writing the same fit twice gives the
same bytes. Reading never runs anything from the file.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fairmaxent.data import frames
from fairmaxent.data.columns import Arrays, Record
from fairmaxent.data.domain import Domain
from fairmaxent.data.likely import Chances, are_of_rows
from fairmaxent.data.limits import masses, sound
from fairmaxent.data.reading import Reading, ReadingRequest, RedrawnValues
from fairmaxent.data.roles import Roles
from fairmaxent.data.table import (
    Blocks,
    Mask,
    Names,
    Positions,
    Reals,
    Table,
    match_rows,
    row_keys,
)
from fairmaxent.distribution import Distribution
from fairmaxent.engines.rows import read_pieces
from fairmaxent.errors import DependencyError, Option, StorageError, shown
from fairmaxent.facts.fitted import UnderivedFacts
from fairmaxent.fairness.fair_table import reweigh
from fairmaxent.files.write import Staging, remove
from fairmaxent.fit.certificate import Certificate, certify
from fairmaxent.fit.problem import Problem
from fairmaxent.fit.records import (
    MOST_BYTES,
    check_domain,
    damaged,
    pack,
    read_archive,
    require,
    unpack,
    write_archive,
)
from fairmaxent.fit.relabel import with_labels
from fairmaxent.fit.request import Request
from fairmaxent.fit.solved import Solved
from fairmaxent.maxent.dual import Dual
from fairmaxent.maxent.features import cell_features
from fairmaxent.maxent.optimum import Optimum
from fairmaxent.maxent.priors.bases import check_registered, pack_base, unpack_base
from fairmaxent.maxent.priors.mixture import Mixture
from fairmaxent.maxent.priors.protocol import Prior
from fairmaxent.maxent.priors.rows import Rows
from fairmaxent.maxent.search import Status
from fairmaxent.maxent.solvers import Solution
from fairmaxent.plain_text import Values

FORMAT = "fairmaxent model"
VERSION = 2
_KEPT = "fairmaxent counts"
_ANY_SIZE = 1 << 40  # bytes: it was written here

# Other machines add in another order; nobody sees a smaller difference.
_RELATIVE = 1e-6
_ABSOLUTE = 1e-9
_LARGEST_RESIDUAL = 1e-6  # solvers stop far below
# of a certificate: they follow from the rest, and are no plain values
_MADE_AGAIN = ("measure", "table", "set_apart", "gaps", "targets")
_COUNTS = ("folds", "rounds", "trainings", "people", "measured_on")


@dataclass(frozen=True, eq=False, kw_only=True)
class _Model:
    """What cannot be made again; fields named as those of `Solved` are the same."""

    request: Request
    columns: Names
    domain: Domain
    table: Table
    soft: Reals | None
    labels: Reals | None
    base: dict[str, NDArray[Any]]
    rows_in_use: Mask | None  # of a prior of rows alone; None: all
    target: Reals
    solution: Solution
    positions: dict[str, NDArray[np.unsignedinteger]]
    design_weights: Reals | None
    weight_column: frames.Column | None
    weight_scale: float
    chances: Chances | None


@dataclass(frozen=True, eq=False, kw_only=True)
class _Read:
    """What is kept of a table that was read, beside its distinct rows."""

    asked: str
    parts: int
    columns: Names
    domain: Domain
    weight_column: frames.Column | None
    redrawn: RedrawnValues | None
    weight_scale: float
    left_out: Names


@dataclass(frozen=True)
class KeptCounts:
    """The counts of a table, kept in a folder until what was asked for is done."""

    folder: Path
    asked: str  # what the table was, and how it was read

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            remove(self.folder)

    def keep(self, data: Reading) -> None:
        """Write what was read, completely or not at all."""
        with Staging([], folders=[self.folder]) as staging:
            folder = staging.path_for(self.folder)
            stored = _Read(
                asked=self.asked,
                domain=data.roles.domain,
                **_same_fields(data, _Read),
                parts=data.table.each_piece(_write, partial(_part_of, folder)),
            )
            _write(stored, folder / _KEPT)

    def reading(self, request: ReadingRequest) -> Reading | None:
        """What was read; None if nothing was kept."""
        if not self.folder.exists():
            return None
        stored = _unpacked(self.folder / _KEPT, _Read)
        if stored.asked != self.asked:
            raise StorageError(
                f"{self.folder} holds counts of other data, or for other options;"
                " remove it, or leave out ",
                Option("resume"),
            )
        roles = request.roles(stored.domain)
        same = _same_fields(stored, Reading)
        paths = [_part_of(self.folder, number) for number in range(stored.parts)]
        table = read_pieces(paths, partial(_unpacked, kind=Table), roles.blocks)
        return Reading(**same, roles=roles, table=table, design=None)


def _part_of(folder: Path, number: int) -> str:
    return str(folder / f"part-{number:05}")


def _write(part: _Read | Table, path: str | PathLike[str]) -> None:
    arrays: Arrays = {}
    record = {"format": _KEPT, **pack(part, arrays)}
    write_archive(path, record, arrays, readable=False)


def _unpacked(path: str | PathLike[str], kind: type) -> Any:
    record, arrays = read_archive(path, _KEPT, _ANY_SIZE)
    del record["format"]
    return unpack(record, kind, arrays)


def save(
    fit: Solved,
    certificate: Certificate,
    path: str | PathLike[str],
    *,
    readable: bool = False,
) -> None:
    """Write a fit, whole or not at all; ``readable``: other users may read it."""
    if not isinstance(fit.request, Request):
        raise StorageError(
            "fits of the paper's own configurations cannot be saved; fit again where"
            " they are needed"
        )
    record, arrays = _packed(fit)
    record["certificate"] = pack(certificate, without=_MADE_AGAIN)
    write_archive(path, record, arrays, readable=readable)


def _same_fields(record: Any, kind: Any) -> Values:
    """The fields of a record that one of another kind has, too."""
    return {
        field.name: getattr(record, field.name)
        for field in fields(kind)
        if hasattr(record, field.name)
    }


def _packed(fit: Solved) -> tuple[Record, Arrays]:
    weighted = fit.weighted.collect()
    prior = fit.optimum.dual.prior
    base = {}
    in_use = None
    if not isinstance(prior, Rows):
        made_of: Any = prior
        if isinstance(prior, Mixture) and fit.request.C < 1:
            made_of = prior.parts[0]
        base = pack_base(made_of)
    elif prior.rows != np.count_nonzero(weighted.counts):
        every_row = Rows.of(fit.blocks, weighted)
        in_use = match_rows(prior.codes, every_row.codes, prior.blocks.levels) >= 0
    positions = fit.distribution.positions or {}
    stored = _Model(
        **_same_fields(fit, _Model),
        base=base,
        rows_in_use=in_use,
        solution=fit.optimum.solution,
        positions={str(index): rows for index, rows in positions.items()},
    )
    arrays: Arrays = {}
    return {
        "format": FORMAT,
        "version": VERSION,
        **pack(stored, arrays),
    }, arrays


# ---------------------------------------------------------------- back from a file


def load(
    path: str | PathLike[str], *, max_bytes: int = MOST_BYTES
) -> tuple[Solved, Certificate]:
    """Read a fit that was saved; refuse parts that do not follow from each other."""
    record, arrays = read_archive(path, FORMAT, max_bytes)
    if record.get("version") != VERSION:
        raise StorageError(
            f"{path} has format version {shown(record.get('version'))}, but this"
            f" fairmaxent reads version {VERSION}; upgrade fairmaxent, or fit and save"
            " again"
        )

    check_registered(path, record.get("request"))
    try:
        with np.errstate(all="ignore"):  # of numbers that are refused below
            stated = record.pop("certificate")
            model = dict(record)
            del model["format"], model["version"]
            fit = _restored(unpack(model, _Model, arrays))
            again, arrays_again = _packed(fit)
            # What saving the fit again would not write nobody reads, and it could hold
            # people's rows.
            same = arrays.keys() == arrays_again.keys()
            require("it holds arrays that are no part of a model", same)
            same = json.dumps(record) == json.dumps(again)
            require("its header holds something that is no part of a model", same)
            _check_distribution(fit)
            return fit, _certified(fit, stated)
    except DependencyError:
        raise
    except BaseException as problem:
        if not isinstance(problem, Exception) and not frames.is_foreign(problem):
            raise
        raise damaged(path, problem) from problem


def _restored(stored: _Model) -> Solved:
    data = _restored_reading(stored)
    blocks = data.roles.blocks
    problem = Problem.of(stored.request, data)
    target = masses(stored.target, blocks.width)
    weighted = reweigh(_relabelled(stored, problem).counted, target[blocks.slices[0]])
    weighed = problem.weighed
    if weighed is not None:
        weighted = weighed.weighted_rows(stored.table)
    features = cell_features(blocks, problem.moment_scores, target)
    sound(stored.solution.multipliers, "f", (features.count,))
    rows = Rows.of(blocks, weighted.collect())
    prior: Prior = rows
    share = stored.request.C
    if share:
        base = unpack_base(stored.request.base, blocks, stored.base)
        prior = Mixture.of((share, 1 - share), (base, rows))
    elif stored.rows_in_use is not None:
        prior = rows.only(sound(stored.rows_in_use, "b", (rows.rows,)))
    optimum = Optimum(Dual(prior, features, features.mean(target)), stored.solution)
    distribution = Distribution.of(stored.domain, optimum).detailed(
        data.positions,
        data.table,
        data.design if weighed is None else weighed.weights,
        profiles=None if stored.soft is None else problem.profiles,
        by_cell=problem.values is not None,
    )
    return Solved(
        **_same_fields(stored, Solved),
        problem=problem,
        weighted=weighted,
        optimum=optimum,
        distribution=distribution,
    )


def _restored_reading(stored: _Model) -> Reading:
    """The columns and rows, as they were read."""
    request = stored.request
    domain = stored.domain
    check_domain(domain)
    is_likely = stored.chances is not None
    roles = Roles.of(
        domain,
        request.outcome_name,
        request.recorded_names if is_likely else request.protected_names,
        request.within_names,
        request.further_outcomes,
        likely=is_likely,
    )
    named = [*domain.names]
    if request.weight is not None:
        named.append(request.weight)
    require(
        "columns and their descriptions do not fit together",
        sorted(stored.columns) == sorted(named),
    )
    require(
        "a column that was asked for is not there",
        set(request.kept_names) <= set(named),
    )
    _check_weights(stored)
    _check_table(stored, roles.blocks)
    fits = are_of_rows(stored.chances, request.likely, stored.table)
    require("probabilities and rows do not fit together", fits)
    return Reading(
        columns=stored.columns,
        roles=roles,
        table=stored.table,
        design=stored.design_weights,
        weight_column=stored.weight_column,
        positions=_restored_positions(stored, roles.blocks),
        chances=stored.chances,
    )


def _check_weights(stored: _Model) -> None:
    """Refuse a weight column that says more than its name and kind."""
    weight = stored.weight_column
    single = weight is None or (
        weight.name == stored.request.weight
        and len(weight) == 1
        and weight.to_list() == [1]
    )
    require("the weight column holds a single one", single)
    require(
        "the scale of the design weights makes no sense",
        0 < stored.weight_scale < np.inf,
    )


def _check_table(stored: _Model, blocks: Blocks) -> None:
    """Refuse rows out of order, and sums that no weights of so many rows have."""
    table = stored.table
    size = len(table.codes)
    codes = sound(table.codes, "u", (size, len(blocks.levels)))
    for column, levels in zip(codes.T, blocks.levels, strict=True):
        sound(column, "u", (size,), high=levels - 1)
    keys, _ = row_keys(codes, blocks.levels)
    sound(np.diff(keys), "i", (size - 1,), low=1)
    rows = masses(table.rows, size)
    counts = masses(table.counts, size)
    squares = masses(table.squares, size)
    peaks = masses(table.largest, size)
    design = None
    if stored.design_weights is not None:
        design = masses(stored.design_weights, table.size)
    fits = (
        0 < counts.sum() < np.inf
        and rows.all()
        and (rows == np.round(rows)).all()
        and rows.sum() < 2**53
    )
    slack = 1e-9 * counts**2
    fits &= (squares * rows >= counts**2 - slack).all()
    fits &= (squares <= counts**2 + slack).all()
    fits &= (peaks <= counts * (1 + 1e-9)).all()
    fits &= (peaks * rows >= counts * (1 - 1e-9)).all()
    weighs = stored.weight_column is not None
    fits &= design is None or (weighs and table.places is not None)
    if table.places is not None:
        sound(table.places, "i", (len(table.places),), low=0, high=size - 1)
        again = Table.tallied(table.codes, table.places, design)
        fits &= (design is not None) == weighs == (table.peaks is not None)
        fits &= all(
            np.allclose(stated, real, rtol=1e-6, atol=0)
            for stated, real in (
                (rows, again.rows),
                (counts, again.counts),
                (squares, again.squares),
                (peaks, again.largest),
            )
        )
    require("the rows and their counts do not fit together", bool(fits))


def _restored_positions(stored: _Model, blocks: Blocks) -> Positions | None:
    """Raw values of the input rows, each inside the level that the row has."""
    if not stored.positions:
        return None

    codes = blocks.unpool(stored.table.codes)[stored.table.inverse]
    positions = {int(index): array for index, array in stored.positions.items()}
    shape = (len(codes),)
    for index, array in positions.items():
        starts = stored.domain.attributes[index].level_starts
        level = codes[:, index]
        sound(sound(array, "u", shape) - starts[level], "i", shape, low=0)
        sound(starts[level + 1] - array, "i", shape, low=1)
    return positions


def _relabelled(stored: _Model, problem: Problem) -> Problem:
    """The problem with the labels of the profiles, if those are possible."""
    soft = stored.soft
    labels = stored.labels
    if soft is None or labels is None:
        require("soft labels are not complete", soft is labels)
        return problem
    # Checked before there is an array of that many columns.
    if soft.shape[1:] != (problem.blocks.shape(0)[0],):
        raise ValueError("soft labels are about other outcomes")

    profiles = problem.profiles
    for shares in (soft, labels):
        totals = masses(shares, *profiles.counts.shape).sum(axis=1)
        whole = np.isclose(totals, 1) | (np.isclose(totals, 0) & (profiles.mass == 0))
        require("soft labels do not sum to one", bool(whole.all()))
    require("an impossible outcome has a weight", not (labels[soft <= 0] > 0).any())
    return with_labels(problem, labels)


# ---------------------------------------------------------------- what follows from it


def _check_distribution(fit: Solved) -> None:
    """Refuse probabilities or priors that are none, and multipliers off the target."""
    blocks = fit.blocks
    tilted = fit.distribution.tilted
    for levels in (tilted.levels, fit.target):
        for part in blocks.split(levels):
            require(
                "the distribution does not sum to one",
                _is_close(float(part.sum()), 1.0, slack=1e-5),
            )
            require(
                "a probability is outside its range",
                bool(((part >= 0) & (part <= 1 + 1e-9)).all()),
            )

    dual = fit.optimum.dual
    solution = fit.optimum.solution
    parts: Sequence[Prior] = (dual.prior,)
    if isinstance(dual.prior, Mixture):
        parts = dual.prior.parts
    for component in parts:
        excess = component.tilt(np.zeros(blocks.width)).log_partition
        require("the prior does not sum to one", _is_close(excess, 0.0, slack=1e-6))
    value = tilted.log_partition - float(solution.multipliers @ dual.target)
    residual = float(
        np.max(np.abs(dual.features.mean(tilted.levels) - dual.target), initial=0.0)
    )
    require(
        "the solver did not converge",
        solution.status is Status.CONVERGED and residual <= _LARGEST_RESIDUAL,
    )
    same = _is_close(solution.value, value) and _is_close(solution.residual, residual)
    require("the solution states other numbers than it has", same)


def _certified(fit: Solved, stated: Any) -> Certificate:
    """Make the certificate again, and compare it with the stored one.

    What cannot be made again is as stored.
    """
    kept = {field.name: stated[field.name] for field in fields(UnderivedFacts)}
    told: UnderivedFacts = unpack(kept, UnderivedFacts)
    _check_told(fit, told)
    certificate = certify(fit, told)
    expected = pack(certificate, without=_MADE_AGAIN)
    for difference in _differences("", stated, expected):
        raise ValueError(f"its certificate states{difference}")
    str(certificate)  # raises if groupings do not fit together
    return certificate


def _check_told(fit: Solved, told: UnderivedFacts) -> None:
    """Refuse what no fit of these columns, and no trained model, can say."""
    problem = fit.problem
    ledger = told.privacy
    kept = set(fit.columns).intersection(told.left_out_columns)
    require(
        "the certificate says of a column that it was left out, but the model has it",
        not kept,
    )
    binned = tuple(
        column.name for column in fit.domain.attributes if not column.is_value_coded
    )
    redrawn = told.redrawn is None or told.redrawn.columns == binned
    require("the certificate redraws other columns than have bins", redrawn)
    empty = (fit.root_table <= 0) & (problem.empirical > 0)
    names = {problem.roles.describe_cell(cell) for cell in np.argwhere(empty).tolist()}
    are_empty = names.issuperset(told.emptied_cells)
    require("the certificate names cells that are not empty", are_empty)
    same = (None if ledger is None else ledger.privacy) == fit.request.privacy
    require("the ledger is about another privacy budget", same)
    if ledger is not None:
        changed = min((look.sensitivity for look in ledger.spent), default=0.0)
        within = (
            ledger.rho <= ledger.privacy.rho
            and changed >= ledger.privacy.rows_per_person
        )
        require("the ledger spends more than the privacy budget", within)
        rows = (
            fit.table.keeps_rows
            or fit.distribution.positions is not None
            or fit.weight_column is not None
        )
        require("a private model keeps rows", not rows)
    numbers = [
        *_numbers(pack(told.estimate)),
        *_numbers(pack(told.decisions, without=("offsets",))),
    ]
    for name, number in numbers:
        fits = math.isnan(number) or 0 <= number <= (
            math.inf if name in _COUNTS else 1 + 1e-9
        )
        require(
            "a number of the estimate or the decisions of the certificate is outside"
            " its range",
            fits,
        )


def _numbers(value: Any, name: str = "") -> Iterator[tuple[str, float]]:
    """All numbers in nested mappings and lists, with the name of what they are."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _numbers(item, key)
    elif isinstance(value, list):
        for item in value:
            yield from _numbers(item, name)
    elif isinstance(value, int | float):
        yield name, float(value)


def _differences(path: str, stated: Any, expected: Any) -> Iterator[str]:
    """Where two plain values differ by more than rounding."""
    if (
        isinstance(expected, Mapping)
        and isinstance(stated, Mapping)
        and stated.keys() == expected.keys()
    ):
        for name in expected:
            yield from _differences(f"{path} {name}", stated[name], expected[name])
    elif (
        isinstance(expected, list)
        and isinstance(stated, list)
        and len(stated) == len(expected)
    ):
        for told, real in zip(stated, expected, strict=True):
            yield from _differences(path, told, real)
    elif not _is_same(stated, expected):
        yield f"{path} as {_told(stated)}, but what it holds gives {_told(expected)}"


def _is_same(stated: Any, expected: Any) -> bool:
    if type(stated) is not type(expected):
        return False
    if isinstance(stated, float):
        return _is_close(stated, expected)
    return bool(stated == expected)


def _told(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else shown(value)


def _is_close(stated: float, expected: float, *, slack: float = _ABSOLUTE) -> bool:
    both_unknown = math.isnan(stated) and math.isnan(expected)
    return both_unknown or math.isclose(
        stated, expected, rel_tol=_RELATIVE, abs_tol=slack
    )
