"""Facts of a fit, taken from its objects and from pandas, and looked for at each door.

A fact has a form (what a sentence or a row of a table with its numbers looks like) and
its numbers. A door is right if one of its lines has the form with these numbers, wrong
if it has the form with others only, and misses a fact that it must say if no line has
the form.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from doors import DOORS, Made
from numbers_of import numbers_in

from fairmaxent.fairness.likely import REFUTED

PAPERS = {"article 10", "card", "croissant"}
REPORTS = {"report.md", "report.html", "report.json"}
COMMANDS = {"command", "command --json"}
SHORT = {"glance", "notebook", "verify"}
# what a door must say, by how much a reader needs it
EVERYWHERE = SHORT | COMMANDS | REPORTS | PAPERS | {"certificate", "first page", "page"}
WARNED = EVERYWHERE | {"warnings"}
COSTS = EVERYWHERE - SHORT - PAPERS
NOTED = COSTS - {"first page"} | PAPERS | {"warnings"}
DELIVERED = COMMANDS | REPORTS | {"first page"}
EXACT = EVERYWHERE - DELIVERED
ALL_DOORS = (*DOORS, "warnings")
_N = r"(?P<n{}>[\d,]+(?:\.\d+)?(?:e[-+]?\d+)?(?: ?%)?)"
_FEWEST = 30  # effective rows
_MOST = 10  # times


@dataclass(frozen=True)
class Fact:
    """What is true, how it is said, and where it must be."""

    key: str
    forms: tuple[str, ...]  # with # for each number
    numbers: tuple[float, ...]
    doors: frozenset[str]  # where it must be
    silent: frozenset[str] = frozenset()  # where the form is that of something else

    def verdict(self, lines: list[str], door: str) -> str:
        if door in self.silent:
            return ""
        found = [
            numbers
            for form in self.forms
            for line in lines
            for numbers in stated(form, line)
        ]
        if any(agree(numbers, self.numbers) for numbers in found):
            return "right"
        if found:
            return "wrong"
        return "missing" if door in self.doors else ""


def stated(form: str, line: str) -> Iterator[list[str]]:
    """The numbers of each place of a line that has a form."""
    pieces = form.split("#")
    pattern = pieces[0]
    for index, piece in enumerate(pieces[1:]):
        pattern += _N.format(index) + piece
    for match in re.finditer(pattern, line, re.IGNORECASE):
        yield [*match.groupdict().values()]


def agree(texts: list[str], numbers: tuple[float, ...]) -> bool:
    """Whether what is stated are these numbers, as far as it has digits."""
    for text, number in zip(texts, numbers, strict=True):
        ((value, half),) = numbers_in(text)
        whole = 0.5 if half == 0 else half  # a count that is expected is rounded
        if abs(value - number) > 1.01 * whole + 1e-9 * abs(number):
            return False
    return True


def lines_of(made: Made, door: str) -> list[str]:
    """What a door shows, line by line."""
    if door == "warnings":
        text = "\n".join(made.fit.certificate.warnings)
    else:
        text = DOORS[door].read(made)
    return [" ".join(line.replace("|", " ").split()) for line in text.splitlines()]


def fact(
    key: str,
    *forms: str,
    numbers: object = (),
    doors: set[str],
    silent: set[str] = frozenset(),
) -> Fact:
    listed = [numbers] if np.isscalar(numbers) else numbers
    return Fact(
        key, forms, tuple(map(float, listed)), frozenset(doors), frozenset(silent)
    )


def rate(frame: pd.DataFrame, weight: str, by: list[str], outcome: str, good) -> float:
    """The lowest share of an outcome in a group, divided by the highest."""
    lowest = 1.0
    for level in good:
        has = frame[weight] * (frame[outcome] == level)
        shares = has.groupby([frame[name] for name in by]).sum()
        shares /= frame.groupby(by)[weight].sum()
        if not shares.max() > 0:
            return np.nan
        lowest = min(lowest, shares.min() / shares.max())
    return float(lowest)


class Truth:
    """What pandas finds in the table, in its fair weights, and in what was delivered."""

    def __init__(self, made: Made) -> None:
        self.made = made
        self.asked = made.asked
        self.fit = made.fit
        self.certificate = made.fit.certificate
        self.outcomes = [*made.fit.roles.outcome_names]
        self.outcome = self.outcomes[0]
        options = self.asked.options
        named = options.get("favourable")
        levels = self.asked.frame[self.outcome].dropna().unique()
        self.good = [named] if isinstance(named, str) else sorted(levels)
        self.within = options.get("within")
        self.is_joint = options.get("groups") == "joint"
        likely = made.fit.request.likely
        self.groups = [
            name
            for name in made.fit.roles.protected_names
            if likely is None or name != likely.name
        ]

    @property
    def is_plain(self) -> bool:
        """Whether groups are columns of the table, compared one by one."""
        return (
            not self.made.is_private
            and self.asked.how == "debias"
            and not self.asked.options.get("release")
            and not self.within
            and not self.is_joint
            and bool(self.groups)
            and not self.certificate.filled_cells
            and not self.certificate.binned_columns
        )

    @cached_property
    def before(self) -> pd.DataFrame:
        frame = self.known(self.asked.frame)
        design = self.asked.options.get("weight")
        frame["w"] = 1.0 if design is None else frame[design]
        return frame

    @cached_property
    def after(self) -> pd.DataFrame:
        """The rows with their fair weights; relabelled ones once for each outcome."""
        weighed = self.fit.weigh(self.asked.table, weight_name="w")
        return self.known(weighed.to_pandas())

    def known(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The table; missing values are a group where they are compared."""
        if not self.asked.options.get("compare_missing"):
            return frame.copy()
        return frame.assign(
            **{name: frame[name].fillna("missing") for name in self.groups}
        )

    @cached_property
    def delivered(self) -> pd.DataFrame:
        """What the command wrote, with old rows where there are some."""
        if self.asked.mode == "weights":
            return self.after
        rows = self.known(self.made.result.frame.to_pandas()).assign(w=1.0)
        if self.asked.mode == "top-up":
            old = self.before[[*rows.columns]]
            rows = pd.concat([old, rows], ignore_index=True)
        return rows

    def apart(self, column: str) -> set[str]:
        found = self.certificate.set_apart
        return {one.group for one in found if one.column == column}

    def compared(self, frame: pd.DataFrame, column: str) -> pd.DataFrame:
        """The rows of the groups that decide the rate of a column."""
        kept = frame.dropna(subset=[column, self.outcome])
        return kept[~kept[column].isin(self.apart(column))]


def facts_of(made: Made) -> Iterator[Fact]:
    """All that is known of a fit."""
    truth = Truth(made)
    if truth.is_plain:
        yield from rate_facts(truth)
        yield from cost_facts(truth)
        yield from outcome_facts(truth)
        yield from apart_facts(truth)
    if truth.is_plain or truth.asked.options.get("release"):
        yield from copy_facts(truth)
    yield from private_facts(truth)
    yield from likely_facts(truth)
    yield from model_facts(truth)
    yield from table_facts(truth)
    yield from missed_facts(truth)


# ---------------------------------------------------------------- rates and costs


def rate_facts(truth: Truth) -> Iterator[Fact]:
    for column in truth.groups:
        sides = [
            rate(
                truth.compared(frame, column),
                "w",
                [column],
                truth.outcome,
                truth.good,
            )
            for frame in (truth.before, truth.after, truth.delivered)
        ]
        if any(np.isnan(sides)):
            continue
        if len(truth.outcomes) > 1 or truth.certificate.means:
            continue
        row = rf"statistical rate of {column}(?: \(as assumed\))?"
        sheet = rf"is in the groups of {column} \(statistical rate\)"
        table = rf"^{row} (?:any|[\d.]+) # #"
        text = rf"{row}; asked of the table [^;]*; in the data #; in the distribution #"
        yield fact(
            "rate",
            table,
            text,
            numbers=sides[:2],
            doors=EXACT,
            silent=COMMANDS,
        )
        drawn = (sides[0], sides[2])
        yield fact("drawn rate", table, numbers=drawn, doors=COMMANDS, silent=EXACT)
        is_shown = truth.certificate.wanted["statistical_rate"].get(column) is not None
        yield fact(
            "reported rate",
            rf"{sheet} (?:any|[\d.]+)(?: \(target\))? # # (?:✓|✗|met|not asked)",
            numbers=drawn,
            doors=REPORTS | {"first page"} if is_shown else set(),
        )

    yield from size_facts(truth)


def size_facts(truth: Truth) -> Iterator[Fact]:
    """How equal groups are in size, and how many wishes are met."""
    asked = 0
    met = 0
    targets = truth.asked.options.get("target") or {}
    for column in truth.groups:
        sides = []
        for frame in (truth.before, truth.after, truth.delivered):
            known = frame[frame[column].notna()]
            if "smallest_group" in truth.asked.options:
                known = known[~known[column].isin(truth.apart(column))]
            sizes = known.groupby(column)["w"].sum()
            sizes = sizes[sizes > 0]
            sides.append(float(sizes.min() / sizes.max()))
        row = (
            rf"^representation rate of {column}(?: \(as assumed\))? (?:any|[\d.]+) # #"
        )
        if not set(truth.before[column].dropna()) - set(truth.after[column].dropna()):
            yield fact(
                "size rate",
                row,
                numbers=sides[:2],
                doors=EXACT - {"croissant"},
                silent=COMMANDS,
            )
        wanted = truth.certificate.wanted["representation_rate"].get(column)
        if wanted is not None:
            asked += 1
            met += sides[1] >= wanted - 1e-6
        wanted = truth.certificate.wanted["statistical_rate"].get(column)
        if wanted is not None:
            asked += 1
            kept = truth.compared(truth.after, column)
            reached = rate(kept, "w", [column], truth.outcome, truth.good)
            met += reached >= wanted - 1e-6
    if asked and not targets and len(truth.outcomes) == 1:
        yield fact(
            "verdict",
            r"Rates asked for: #\. Met by the distribution: #;",
            numbers=(asked, met),
            doors=REPORTS | {"first page"},
        )


def kish(weights: pd.Series) -> float:
    return float(weights.sum() ** 2 / (weights**2).sum())


def by_person(truth: Truth) -> pd.DataFrame:
    """The weight of each input row, and its groups."""
    weights = np.asarray(truth.fit.weights())
    total = weights.sum(axis=1) if weights.ndim == 2 else weights
    return truth.before.assign(fair=total)


def cost_facts(truth: Truth) -> Iterator[Fact]:
    people = by_person(truth)
    fair = people["fair"] / people["fair"].mean()
    worth = kish(fair)
    yield fact(
        "effective rows",
        "carry as much information as # equally weighted rows",
        "they tell as much as # rows that count alike",
        numbers=worth,
        doors=COSTS | PAPERS,
    )
    if truth.fit.weighed is not None:
        return
    warned = 0
    for column in truth.groups:
        for level, own in fair.groupby(people[column]):
            share = float(own.sum() / fair.sum())
            before = float(people.loc[own.index, "w"].sum() / people["w"].sum())
            name = re.escape(f"{column} = {level}")
            kept = own[own > 0]
            if not len(kept):
                continue
            yield fact(
                "group costs",
                rf"^{name} # # # # # [\d.]+$",
                numbers=(len(own), before, share, kish(own), own.max()),
                doors={"certificate", "page"},
            )
            is_few = kish(own) < _FEWEST
            if is_few and warned < 3:
                warned += 1
                yield fact(
                    "few people",
                    rf"{name}: [^.]*rests on # rows",
                    rf"{name}: [\d.]+% of the result rests on # rows",
                    numbers=len(own),
                    doors=WARNED,
                )
                if share > before * (1 + 1e-6):
                    yield fact(
                        "few people grow",
                        rf"{name}: # of the result rests on # rows \(# of the data\)",
                        numbers=(share, len(own), before),
                        doors=WARNED,
                    )
                if own.max() > _MOST:
                    yield fact(
                        "one person",
                        rf"{name}: .*one person has # times the average weight",
                        numbers=own.max(),
                        doors=WARNED,
                    )


def outcome_facts(truth: Truth) -> Iterator[Fact]:
    doors = set(EVERYWHERE - SHORT)
    for level in truth.good:
        sides = []
        for frame in (truth.before, truth.after, truth.delivered):
            is_good = frame[truth.outcome] == level
            sides.append(float(frame["w"][is_good].sum() / frame["w"].sum()))
        line = rf"outcome {re.escape(f'{truth.outcome} = {level}')}: # before, # after"
        if len(truth.good) > 4 or len(truth.outcomes) > 1:
            continue
        exact = doors - DELIVERED
        yield fact("outcome", line, numbers=sides[:2], doors=exact, silent=DELIVERED)
        drawn = (sides[0], sides[2])
        yield fact("drawn outcome", line, numbers=drawn, doors=DELIVERED, silent=exact)
    for column in truth.groups:
        for level, own in truth.before.groupby(column):
            name = re.escape(f"{column} = {level}")
            good = truth.good[0]
            about = re.escape(f"{truth.outcome} = {good}")
            sides = []
            for frame in (truth.before, truth.after, truth.delivered):
                mine = frame[(frame[column] == level) & frame[truth.outcome].notna()]
                if mine["w"].sum() > 0:
                    has = mine["w"][mine[truth.outcome] == good].sum()
                    sides.append(float(has / mine["w"].sum()))
            if len(sides) < 3 or len(truth.outcomes) > 1 or truth.fit.weighed:
                continue
            count = len(own)
            row = rf"^{name} # # # {about} # (?:[\d.]+% to [\d.]+%|–) #$"
            text = (
                rf"{name}; people #; share of the data #; share of the distribution #;"
                rf" outcome {about}; in the data #; 95 % interval [^;]*; in the"
                r" distribution #"
            )
            fair = truth.after["w"][truth.after[column] == level].sum()
            shares = (
                float(own["w"].sum() / truth.before["w"].sum()),
                float(fair / truth.after["w"].sum()),
            )
            yield fact(
                "group",
                row,
                text,
                numbers=(count, *shares, *sides[:2]),
                doors=PAPERS,
            )
            if level not in truth.apart(column) and len(truth.good) == 1:
                sheet = rf"^{name} # # (?:[\d.]+% – [\d.]+%|–) #$"
                drawn = (count, sides[0], sides[2])
                yield Fact("drawn group", (sheet,), drawn, frozenset())


def apart_facts(truth: Truth) -> Iterator[Fact]:
    for one in truth.certificate.set_apart:
        frames = [truth.before, truth.after]
        shares = []
        for frame in frames:
            own = frame[frame[one.column].astype(str) == one.group]
            if not own["w"].sum() > 0:  # nobody of it is left
                return
            has = own["w"][own[truth.outcome].astype(str) == one.outcome].sum()
            shares.append(float(has / own["w"].sum()))
        is_kept = abs(shares[0] - shares[1]) < 1e-9
        done = "left as it is" if is_kept else "but treated like the others"
        people = int((truth.before[one.column].astype(str) == one.group).sum())
        yield fact(
            "set apart",
            rf"compare, {done}: {re.escape(one.name)} \(# people; [^)]*"
            rf"{re.escape(one.about)} # before, # after",
            numbers=(people, *shares),
            doors=EVERYWHERE,
        )


def repeated(real: pd.DataFrame, new: pd.DataFrame) -> int:
    """How many new rows have all the values of a real one."""
    names = [*new.columns]

    def keys(frame: pd.DataFrame) -> list[str]:
        rows = frame[names].itertuples(index=False, name=None)
        return [
            repr(tuple("-" if pd.isna(cell) else cell for cell in row)) for row in rows
        ]

    known = set(keys(real))
    return sum(key in known for key in keys(new))


def copy_facts(truth: Truth) -> Iterator[Fact]:
    copied = truth.certificate.copied_share
    if copied:
        yield fact(
            "copied share",
            "About # of drawn rows are copies",
            numbers=copied,
            doors={"certificate", "page"},
        )
    if truth.asked.mode == "weights" or truth.made.result.frame is None:
        return
    new = truth.made.result.frame.to_pandas()
    if not len(new):
        return
    weight = truth.asked.options.get("weight")
    names = [name for name in new if name in truth.asked.frame and name != weight]
    copies = repeated(truth.asked.frame, new[names])
    yield fact(
        "copies",
        r"# of # (?:new|added) rows \(#\) have exactly the values of a real row in"
        " every",
        numbers=(copies / len(new), len(new), copies),
        doors=REPORTS | {"first page"},
    )


# ---------------------------------------------------------------- kinds of fits


def private_facts(truth: Truth) -> Iterator[Fact]:
    ledger = truth.certificate.privacy
    if ledger is None:
        return
    privacy = ledger.privacy
    yield fact(
        "promise",
        "private with ε = #, δ = #",
        numbers=(privacy.epsilon, privacy.delta),
        doors=EVERYWHERE,
    )
    cell, _ = ledger.count_ranges
    yield fact(
        "noise",
        "count of an outcome in a group by up to #",
        numbers=round(cell),
        doors=EVERYWHERE,
    )
    yield fact(
        "spending",
        "another private fit of the same people.* spends another ε = #",
        numbers=privacy.epsilon,
        doors=NOTED,
    )


def likely_facts(truth: Truth) -> Iterator[Fact]:
    likely = truth.certificate.likely
    if likely is None:
        return
    if likely.told_by == "names" and likely.contradiction is not None:
        word = "do not contradict"
        doors = EVERYWHERE
        if likely.contradiction < REFUTED:
            word = "contradict"
            doors = WARNED
            yield fact(
                "assumption refuted",
                rf"^(?:[-•] )?(?:Warning: )?what is assumed of {likely.name} does not",
                doors=WARNED - SHORT - {"certificate", "command"},
            )
            yield fact(
                "assumption refuted, warned",
                rf"Warning: what is assumed of {likely.name} does not hold",
                doors=SHORT | {"certificate", "command"},
            )
        yield fact(
            "assumption",
            rf"The data {word} that \(p = #\)",
            numbers=float(f"{likely.contradiction:.2g}"),
            doors=doors,
        )
    for when, rates in (("before", likely.before), ("after", likely.after)):
        for one in rates:
            both = (one.expected, *one.interval)
            first = r"# \(# to #\)"
            whose = "of (?:these people|people like these)[;:]?"
            row = rf"expected by the true groups {whose} (?:before )?{first}"
            if when == "after":
                row = (
                    rf"expected by the true groups {whose} (?:before )?[\d.]+ \([\d.]+"
                    rf" to [\d.]+\);? (?:after )?{first}"
                )
            yield fact(f"expected {when}", row, numbers=both, doors=EVERYWHERE)
    for when, rates in (("before", likely.before), ("after", likely.after)):
        for one in rates:
            row = "whatever is assumed;? (?:before )?# to #"
            if when == "after":
                row = r"whatever is assumed;? (?:before )?[\d.]+ to [\d.]+;? (?:after )?# to #"
            yield fact(f"bounds {when}", row, numbers=one.bounds, doors=EVERYWHERE)
    for cost in truth.certificate.costs.groups:
        yield fact(
            "largest weight",
            rf"^{re.escape(cost.name)} # [\d.]+% [\d.]+% [\d,.]+ # [\d.]+$",
            numbers=(cost.rows, cost.most_weight),
            doors={"certificate", "page"},
        )
    if likely.needed is not None:
        yield fact(
            "needed",
            "About # people like these",
            numbers=likely.needed,
            doors=EVERYWHERE,
        )
    if likely.reliability is not None:
        found = likely.reliability
        yield fact(
            "known groups",
            r"The group of # people is known\. That .* has p = #",
            numbers=(sum(found.observed), float(f"{found.chance:.2g}")),
            doors=EVERYWHERE,
        )


def model_facts(truth: Truth) -> Iterator[Fact]:
    made = truth.certificate.decisions
    if made is not None:
        sees = "does not see" if made.hide_protected else "sees"
        yield fact(
            "made for",
            rf"{made.student} that {sees} the protected columns",
            doors=EVERYWHERE,
        )
        yield fact(
            "decided",
            "the good outcome for # of them",
            numbers=made.decided,
            doors=EVERYWHERE,
        )
        for share in made.shares[:4]:
            what = re.escape(f"{share.outcome} for {share.group}")
            yield fact(
                "decided share",
                rf"{what}(?: –)* # # to # #",
                rf"{what}; wanted ; expected #; 95 % interval # to #; in the table #",
                rf"{what}; wanted –; expected #; 95 % interval # to #; in the table #",
                numbers=(share.share, share.low, share.high, share.taught),
                doors=EVERYWHERE,
            )
        for one in made.rates:
            if one.vacuous:
                shares = [s.share for s in made.shares if s.grouping == one.grouping]
                whom = "between"
                if max(shares) == 0:
                    whom = "nobody"
                elif min(shares) == 1:
                    whom = "everybody"
                way = "lower" if np.mean(shares) <= 0.5 else "higher"
                yield fact(
                    "decides alike",
                    rf"decides for .* for (?:{whom}|[\d.]+% of each).* Choose a {way}",
                    doors=WARNED,
                )
            elif one.wanted and one.rate is not None and one.rate < one.wanted - 0.1:
                yield fact(
                    "decides unequally",
                    rf"for {one.grouping} are expected to have a rate of # \(wanted #\)",
                    numbers=(one.rate, one.wanted),
                    doors=WARNED,
                )
    found = truth.certificate.estimate
    if found is not None:
        for name, value in found.after.by_predictions.items():
            if value is None:
                continue
            before = found.before.by_predictions[name]
            yield fact(
                "estimate",
                rf"Statistical rate of its predictions, {name};?(?: before)? #"
                r"(?: \([^)]*\))?;?(?: after)? #",
                numbers=(before, value),
                doors=EVERYWHERE,
            )
            wanted = truth.certificate.wanted_of_decisions[name]
            if wanted is not None and value < wanted - 0.1:
                yield fact(
                    "unfair model",
                    rf"decisions for {name} is expected to be #[^(]*\(wanted #\)",
                    numbers=(value, wanted),
                    doors=WARNED,
                )
    if truth.fit.soft is not None and made is None and truth.is_plain:
        yield from changed_facts(truth)


def changed_facts(truth: Truth) -> Iterator[Fact]:
    """How many people of a group get another outcome, by their split weights."""
    weights = np.asarray(truth.fit.weights())
    labels = [*truth.fit.roles.attributes[0].labels]
    parts = weights / weights.sum(axis=1, keepdims=True)
    recorded = truth.before[truth.outcome].map(labels.index).to_numpy()
    for column in truth.groups:
        for level in truth.before[column].dropna().unique():
            own = (truth.before[column] == level).to_numpy()
            for old, first in enumerate(labels):
                for new, second in enumerate(labels):
                    moved = parts[own & (recorded == old), new].sum()
                    if new == old or moved < 1:
                        continue
                    yield fact(
                        "changed outcomes",
                        rf"{column} = {level}: of # people, (?:[^.]*, )?#"
                        rf" from {truth.outcome} = {first} to {truth.outcome} = {second}",
                        rf"{column} = {level}: of # people, (?:[^.]*, )?#"
                        rf" from {first} to {second}",
                        numbers=(own.sum(), moved),
                        doors=COSTS | PAPERS,
                    )


def table_facts(truth: Truth) -> Iterator[Fact]:
    certificate = truth.certificate
    frame = truth.asked.frame
    for rule in truth.asked.options.get("forbid", ()):
        if truth.made.is_private:
            continue
        has = np.logical_and.reduce([frame[name] == of for name, of in rule.items()])
        yield fact(
            "forbidden",
            "# rows have the forbidden combination",
            numbers=has.sum(),
            doors=NOTED,
        )
    for name in [*truth.groups, truth.outcome]:
        if name not in frame or truth.asked.options.get("compare_missing"):
            continue
        lacking = frame[name].isna().mean()
        if lacking and not truth.made.is_private:
            yield fact(
                "missing values",
                rf"'{name}' \(# of the rows",
                numbers=lacking,
                doors=NOTED,
            )
    if "name" in frame and not truth.asked.options.get("keep_columns"):
        yield fact("left out", "left out, .*'name'", doors=NOTED)
    for name, bins in certificate.binned_columns.items():
        yield fact(
            "bins", rf"'{name}' is compared in # bins", numbers=len(bins), doors=NOTED
        )
    for level in certificate.removed_levels:
        yield fact("removed", rf"level removed.*{re.escape(level)}", doors=NOTED)
    for names in certificate.single_groups.values():
        yield fact("single groups", rf"a single group: .*{names[0]}", doors=NOTED)
    for cell in certificate.emptied_cells:
        yield fact(
            "emptied", rf"rows with {re.escape(cell)} get weight zero", doors=WARNED
        )
    for cell, share in zip(
        certificate.filled_cells, certificate.filled_shares, strict=True
    ):
        yield fact(
            "filled cell",
            rf"has {re.escape(cell)}: the base fills in this combination, #",
            numbers=share,
            doors=NOTED,
        )
    if certificate.means:
        weights = truth.fit.weigh(truth.asked.table, weight_name="w").to_pandas()
        for column in truth.groups:
            for level, own in weights.groupby(column):
                before = own[truth.outcome].mean()
                after = np.average(own[truth.outcome], weights=own["w"])
                yield fact(
                    "mean",
                    rf"mean of {column} = {level};?(?: before)? #;?(?: achieved)? #",
                    numbers=(before, after),
                    doors=EVERYWHERE,
                )
    yield from chance_facts(truth)
    yield from target_facts(truth)


def target_facts(truth: Truth) -> Iterator[Fact]:
    """Shares that were asked for of columns that are neither outcome nor groups."""
    names = {*truth.groups, *truth.outcomes}
    for column, shares in (truth.asked.options.get("target") or {}).items():
        if column in names or not truth.is_plain:
            continue
        for level in shares:
            sides = [
                frame["w"][frame[column] == level].sum() / frame["w"].sum()
                for frame in (truth.before, truth.after)
            ]
            yield fact(
                "target of another column",
                rf"(?:Shares of {column}:.* |, ){level} from # to #",
                rf"^{level} # #$",
                numbers=sides,
                doors={"page", "report.md", "report.html", "report.json"},
            )


def chance_facts(truth: Truth) -> Iterator[Fact]:
    """Of two groups of one column, whether their gap may be chance."""
    if not truth.is_plain or truth.fit.weighed is not None or len(truth.outcomes) > 1:
        return
    column = truth.groups[0]
    frame = truth.compared(truth.before, column)
    levels = frame[column].unique()
    if len(truth.groups) > 1 or len(levels) != 2 or len(truth.good) != 1:
        return
    if "weight" in truth.asked.options:
        return
    ratio = rate(frame, "w", [column], truth.outcome, truth.good)
    rates = frame.groupby(column)[truth.outcome].agg(
        lambda own: (own == truth.good[0]).mean()
    )
    sizes = frame[column].value_counts()
    pooled = (frame[truth.outcome] == truth.good[0]).mean()
    spread = np.sqrt(pooled * (1 - pooled) * (1 / sizes).sum())
    distance = abs(rates.iloc[0] - rates.iloc[1]) / spread
    if ratio == 0:
        return
    if distance > 2.5:
        form = rf"have {truth.outcome} '[^']*' # times as often .* That is unlikely"
        yield fact("chance", form, numbers=ratio, doors=EVERYWHERE - {"certificate"})
    elif distance < 1.4:
        form = rf"have {truth.outcome} '[^']*' # times as often .* That may well be"
        yield fact("chance", form, numbers=ratio, doors=EVERYWHERE - {"certificate"})


def missed_facts(truth: Truth) -> Iterator[Fact]:
    certificate = truth.certificate
    if truth.is_plain and truth.fit.weighed is None:
        for column, wanted in certificate.wanted["statistical_rate"].items():
            if wanted is None or column not in truth.groups:
                continue
            words = rf"shall be equally common in all groups of {column}\."
            if wanted < 1:
                words = (
                    rf"shall be at least {wanted:g} times as common in each group of"
                )
            if certificate.decisions is None:
                asked = EVERYWHERE - SHORT - {"certificate"}
                yield fact("asked", words, doors=asked)
            frame = truth.compared(truth.after, column)
            reached = rate(frame, "w", [column], truth.outcome, truth.good)
            if reached < wanted - 1e-6:
                yield fact(
                    "wish",
                    rf"groups of {column}\. It is not: the rate is #",
                    rf"group of {column} as in any other\. It is not: the rate is #",
                    numbers=reached,
                    doors=EVERYWHERE - SHORT - {"certificate"},
                )
                yield fact(
                    "missed",
                    rf"statistical rate of {column} is #, not #",
                    numbers=(reached, wanted),
                    doors=WARNED,
                )
    shares = truth.asked.options.get("target") or {}
    for column in truth.groups:
        wanted = shares.get(column)
        if not isinstance(wanted, dict) or not truth.is_plain:
            continue
        total = truth.after["w"].sum()
        errors = {}
        for level, share in wanted.items():
            own = truth.after["w"][truth.after[column] == level].sum() / total
            if abs(own - share) > 1e-6:
                errors[level] = (abs(own - share), float(own), share)
        if errors:
            level = max(errors, key=errors.get)
            _, own, share = errors[level]
            yield fact(
                "missed share",
                rf"{column} = {level} is # of the result, not the #",
                numbers=(own, share),
                doors=WARNED,
            )


# ---------------------------------------------------------------- contradictions


def contradictions(made: Made) -> Iterator[tuple[str, str]]:
    """What must not be said of a fit: a name, and how it would be said."""
    truth = Truth(made)
    certificate = truth.certificate
    decisions = certificate.decisions
    wishes = [
        rate
        for rates in certificate.wanted.values()
        for rate in rates.values()
        if rate is not None
    ]
    yield "shuts its eyes", "decides nearly equally|is equally common in all groups"
    yield "denies copies", "without a copy of anybody|Nothing changes"
    yield "claims of the outcome", "should no longer be related"
    yield "table stays", "The table stays as it is|as equally as it can\\b(?! be)"
    if wishes or decisions is not None:
        yield "nothing asked", "No rate was asked for"
    if certificate.warnings:
        yield "no warning", "the fit has no warning"
    if certificate.likely is not None:
        yield "exact", "Achieved rates are (?:exact|computed from).*not estimated"
        if certificate.likely.reliability is not None:
            yield "nobody known", "Nobody's .* is known for certain"
    if made.asked.how != "paper" and truth.fit.request.asks_sizes_only:
        yield "compared by", "only by how often they have the outcome"
    if decisions is not None:
        shares = [share.share for share in decisions.shares]
        if min(shares) < 1:
            yield "for everybody", "decides for .* for everybody"
        if max(shares) > 0:
            yield "for nobody", "decides for .* for nobody"
        way = "higher" if np.mean(shares) <= 0.5 else "lower"
        yield "threshold", f"Choose a {way}"
        if decisions.way == "none":
            yield "made for", "This table is made for a model"
        yield "compared by", "only by how often they have the outcome"
    if certificate.means:
        yield "compared by", "only by how often they have the outcome"
    if truth.is_plain and truth.fit.weighed is None:
        fair = np.asarray(truth.fit.weights())
        if fair.ndim == 1:
            if np.abs(fair - fair.mean()).max() < 1e-9 * fair.mean():
                yield "less exact", "rows are less exact"
            if truth.asked.mode == "weights" and np.ptp(fair) == 0:
                yield "changed", "were changed on purpose"
        people = by_person(truth)
        few = any(
            kish(own) < _FEWEST or own.max() / people["fair"].mean() > _MOST
            for column in truth.groups
            for _, own in people.groupby(column)["fair"]
            if own.sum() > 0
        )
        worst = certificate.costs.worst_cell
        if not few and worst.times <= _MOST:
            yield "few people", r"rests? on (?:very few|too few|fewer than 30)"
    short = any(
        wanted is not None and (certificate.achieved[kind][name] or 0) < wanted - 1e-6
        for kind, rates in certificate.wanted.items()
        for name, wanted in rates.items()
    )
    if short:
        yield "fair data", "fair data are not enough"
    yield from _ticks(truth)
    if truth.is_plain and truth.fit.weighed is None and truth.fit.soft is None:
        yield from _changes(truth)


def _ticks(truth: Truth) -> Iterator[tuple[str, str]]:
    """A tick beside a rate that was not reached."""
    certificate = truth.certificate
    for column, wanted in (truth.asked.options.get("target") or {}).items():
        if column not in truth.groups or not truth.is_plain:
            continue
        shares = truth.after.groupby(column)["w"].sum() / truth.after["w"].sum()
        if any(
            abs(shares.get(level, 0) - share) > 1e-6 for level, share in wanted.items()
        ):
            yield (
                "tick",
                rf"(?:representation rate of|in size the groups of) {column}.*✓",
            )
    for column, wanted in certificate.wanted["statistical_rate"].items():
        if wanted is None or column not in truth.groups or not truth.is_plain:
            continue
        frame = truth.compared(truth.after, column)
        if rate(frame, "w", [column], truth.outcome, truth.good) < wanted - 1e-6:
            yield "tick", rf"statistical rate of {column} .*✓"
            yield "tick", rf"is in the groups of {column} \(statistical.*✓"


def _changes(truth: Truth) -> Iterator[tuple[str, str]]:
    """That shares or rates were changed, where they were not."""
    shares = rates = False
    for column in truth.groups:
        sizes = []
        parts = []
        for frame in (truth.before, truth.after):
            total = frame.groupby(column)["w"].sum()
            sizes.append(total / total.sum())
            for level in truth.good:
                has = frame["w"] * (frame[truth.outcome] == level)
                parts.append(has.groupby(frame[column]).sum() / total)
        shares |= bool((sizes[0] - sizes[1]).abs().max() > 1e-6)
        half = len(parts) // 2
        for one, other in zip(parts[:half], parts[half:], strict=True):
            rates |= bool((one - other).abs().max() > 1e-6)
    if not shares:
        yield "shares kept", r"\bshares (?:and rates )?were changed"
    if not rates:
        yield "rates kept", r"\brates were changed"
