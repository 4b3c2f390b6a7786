"""Rates, shares and means: as they were asked for, before, and as they were reached."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fairmaxent.document import Blocks, Paragraph, Table
from fairmaxent.document.words import counted, first, more, percent
from fairmaxent.errors import Option, Remark, cut, shown
from fairmaxent.facts.fitted import Facts, GroupMean, TargetShare
from fairmaxent.facts.groups import Gap, GroupChange
from fairmaxent.facts.models import DecidedRate
from fairmaxent.facts.output import Reached
from fairmaxent.telling.case import Case
from fairmaxent.telling.costs import few_people

REACHED = 1e-6  # solvers stop a little short of an exact rate
# how far below the wanted rate a model's decisions may stay without a remark
SLACK = 0.1
DEFINITIONS = (
    "The representation rate is the size of the smallest group divided by that of the"
    " largest. The statistical rate is the lowest rate of an outcome in a group divided"
    " by the highest. Both are those of groups that are compared: none that is set"
    " apart as too small, and within strata, only those of the same stratum."
)
_RATES = 3  # of a small group
_HEADS = ("wanted", "before", "achieved")
_SHOWN_GAP = 0.002  # which three digits show
_OFF = 1e-9  # shares that differ by less are the same
_CLEAR = 0.8  # an interval that reaches lower leaves room for a gap that matters
_AS_ASSUMED = " (as assumed)"


@dataclass(frozen=True)
class RateLine:
    """One rate: what was asked for, what the data have, and what was reached."""

    label: str
    wanted: float | None  # None: nothing was asked for
    before: float | None  # None: unknown
    reached: float | None  # None: unknown
    state: str = ""  # whether what was asked for was reached, in a word


def verdict(case: Case) -> Blocks:
    """How many wishes were met, by the distribution, the output and a model."""
    facts = case.facts
    asked = [rate for rate in _reached(case) if rate.met is not None]
    if case.output is not None and asked:
        exactly = sum(rate.met_exactly is True for rate in asked)
        met = sum(bool(rate.met) or rate.nearly_met for rate in asked)
        yield Paragraph(
            f"Rates asked for: {len(asked)}. Met by the distribution: {exactly}; by"
            f" the {case.output.name}: {met}.{_reminder(case)}"
        )
    if facts.decisions is not None:
        wanted = [rate for rate in facts.decisions.rates if rate.wanted is not None]
        near = sum(_is_near(rate) for rate in wanted)
        yield Paragraph(
            f"Rates asked of the decisions of {facts.decisions.student}:"
            f" {len(wanted)}. Expected to be met among other people, up to {SLACK:g}:"
            f" {near}."
        )
    elif _reached(case) and not asked and not facts.targets:
        yield Paragraph("No rate was asked for.")


def _is_near(decided: DecidedRate) -> bool:
    """Whether a model's decisions are expected to be nearly as equal as was wanted.

    Chance alone keeps the expected ratio of two groups below 1.
    """
    if decided.vacuous or decided.rate is None or decided.wanted is None:
        return False
    return decided.rate >= decided.wanted - SLACK


def _reminder(case: Case) -> str:
    return " The warning names the cost." if any(few_people(case)) else ""


def rates(case: Case) -> Blocks:
    """Each rate wanted, before and reached, by the output if there is one."""
    reached = _reached(case)
    if reached:
        yield reached_table(case, reached)
        return
    heads = _HEADS
    if case.output is not None:
        heads = ("wanted", "before", "after")
    yield rates_table([*rate_lines(case)], heads)


def _reached(case: Case) -> tuple[Reached, ...]:
    return () if case.output is None else case.output.reached


def rates_in_detail(case: Case) -> Blocks:
    """What was reached exactly, between whom, and what chance would make of it."""
    reached = _reached(case)
    if case.output is None or not reached:
        return
    about = (
        f"{DEFINITIONS} A rate of 1 means that all groups are equal."
        " Achieved rates are computed from the fitted distribution, not from rows."
    )
    if case.output.mode == "rows":
        about += (
            " The same number of independent draws would fall into the interval 95% of"
            " the time."
        )
    if any(rate.met_exactly and not rate.met for rate in reached):
        about += (
            " A row cannot be split, and independent draws vary, so a rate of rows can"
            " be below the exact one."
        )
    yield Paragraph(about)
    heads = ["1 means equal", "before", case.output.name, "achieved", "worst before"]
    if case.output.mode == "rows":
        heads.append("independent draws")
    rows = []
    for rate in reached:
        drawn = "–"
        if rate.interval is not None:
            drawn = "{:.3f} – {:.3f}".format(*rate.interval)
        row = (
            _name_of(rate, case.facts),
            rate_text(rate.before),
            rate_text(rate.delivered),
            rate_text(rate.achieved),
            rate.worst_before,
            drawn,
        )
        rows.append(row[: len(heads)])
    yield Table("Rates in detail", tuple(heads), tuple(rows))


def reached_table(case: Case, reached: Sequence[Reached]) -> Table:
    """Each rate wanted, before and as it was delivered, those not met first."""
    assert case.output is not None
    asked = [rate for rate in reached if rate.wanted is not None]
    heads = ("1 means equal", "wanted", "before", case.output.name, "state")
    rows = []
    states = []
    for rate in sorted(asked or reached, key=lambda rate: bool(rate.met)):
        state, words = state_of(rate, case.output.name)
        wanted = rate_text(rate.wanted, nothing="any")
        if rate.from_target:
            wanted += " (target)"
        row = (
            _name_of(rate, case.facts),
            wanted,
            rate_text(rate.before),
            rate_text(rate.delivered),
            words,
        )
        rows.append(row)
        states.append(state)
    return Table("Rates", heads, tuple(rows), state=4, states=tuple(states))


def _name_of(rate: Reached, facts: Facts) -> str:
    """What a rate compares, in words."""
    name = _compared(rate)
    likely = facts.likely
    groups_of = facts.measure.groups_of
    if likely is not None and any(
        groups_of(one.grouping) == rate.grouping for one in likely.before
    ):
        name += _AS_ASSUMED
    return name


def _compared(rate: Reached) -> str:
    if rate.outcome is None:
        return (
            f"How equal in size the groups of {rate.grouping} are (representation rate)"
        )
    return (
        f"How equally common {rate.outcome} is in the groups of {rate.grouping}"
        " (statistical rate)"
    )


def state_of(rate: Reached, rows: str) -> tuple[str, str]:
    """Whether a rate was met, as a class of the page and in words.

    A tick says that the delivered rows meet it.
    """
    if rate.met is None:
        return "", "not asked for"
    if rate.met or rate.nearly_met:
        met = "✓ met" if rate.met else "✓ met, rounded to whole rows"
        if rate.costly:
            return "short", f"{met}, but see the warning"
        return "good", met
    if not rate.met_exactly:
        return "bad", "✗ not met"
    by = "cannot be compared"
    if rate.gap is not None:
        by = f"are {'off' if rate.from_target else 'short'} by {rate.gap:.4f}"
    return "short", f"met by the distribution, but the {rows} {by}"


def rate_lines(case: Case) -> Iterator[RateLine]:
    """Each rate wanted, before and reached, by the output if there is one."""
    facts = case.facts
    reached = facts.achieved
    if case.output is not None:
        reached = case.output.rates
    for kind, name in facts.rates_shown:
        yield RateLine(
            rate_label(facts, kind, name),
            wanted=facts.wanted[kind][name],
            before=facts.before[kind][name],
            reached=reached[kind][name],
            state=_state(case, kind, name),
        )


def rate_label(facts: Facts, kind: str, name: str) -> str:
    """Name a rate, and say whether it rests on groups that are only likely."""
    label = facts.measure.rate_name(kind, name)
    if facts.likely is not None and facts.likely.is_about(name):
        label += _AS_ASSUMED
    return label


def _state(case: Case, kind: str, name: str) -> str:
    """Whether the distribution has what was asked for; rows have their own words."""
    facts = case.facts
    if case.output is not None or facts.wanted[kind][name] is None:
        return ""
    return "✗ short" if is_short(facts, kind, name) else "✓ reached"


def is_short(facts: Facts, kind: str, name: str) -> bool:
    """Whether a rate that was asked for, or the shares behind it, was not reached."""
    wanted = facts.wanted[kind][name]
    reached = facts.achieved[kind][name]
    if wanted is None:
        return False
    if kind == "representation_rate" and any(
        share.is_missed
        for share in facts.targets
        if share.grouping == facts.measure.columns_of(name)
    ):
        return True
    return reached is None or reached < wanted - REACHED


def rates_table(
    lines: Sequence[RateLine],
    heads: tuple[str, str, str],
) -> Table:
    """Each rate as it was asked for, before and after, and how it is judged."""
    shown = ["", *heads]
    if any(line.state for line in lines):
        shown.append("")
    rows = []
    for line in lines:
        row = (
            line.label,
            rate_text(line.wanted, nothing="any"),
            rate_text(line.before),
            rate_text(line.reached),
            line.state,
        )
        rows.append(row[: len(shown)])
    return Table("Rates, 1 is equal", tuple(shown), tuple(rows))


def rate_text(value: float | None, nothing: str = "–") -> str:
    """Write a rate, with no sign before a zero; a dash, say, if there is none."""
    if value is None or math.isnan(value):
        return nothing
    return f"{round(value, 4) + 0.0:.4f}"


# ---------------------------------------------------------------- what was missed


def missed(case: Case) -> Blocks:
    """What was asked for and cannot be reached, and the limit that would allow it."""
    facts = case.facts
    yield from case.notes(_missed_for_the_limit(facts))
    yield from case.notes(map(_missed_share, _missed_shares(facts)))


def _missed_for_the_limit(facts: Facts) -> Iterator[Remark]:
    limit = facts.weight_limit
    needed = facts.needed_limit
    if limit is None or needed is None or needed <= limit * (1 + REACHED):
        return
    short = []
    for kind, name in facts.rates_shown:
        wanted = facts.wanted[kind][name]
        reached = facts.achieved[kind][name]
        if wanted is not None and reached is not None and reached < wanted - REACHED:
            rate = facts.measure.rate_name(kind, name)
            digits = 3 if wanted - reached >= _SHOWN_GAP else 6
            short.append(f"the {rate} is {reached:.{digits}f}, not {wanted:.{digits}f}")
    missed_rates = ", ".join(short) or "not all shares are those asked for"
    yield (
        f"{missed_rates}: that is the most that can be reached, because no row may"
        f" count more than {limit:g} times; a limit of"
        f" {math.ceil(100 * needed) / 100:g}"
        " would allow what was asked for (",
        Option("largest_weight"),
        ")",
    )


def _missed_shares(facts: Facts) -> Iterator[TargetShare]:
    """Shares that the user named and the result does not have, the worst of each."""
    missed_shares = [share for share in facts.targets if share.is_missed]
    for grouping in dict.fromkeys(share.grouping for share in missed_shares):
        own = [share for share in missed_shares if share.grouping == grouping]
        yield max(own, key=lambda share: abs(share.after - share.wanted))


def _missed_share(share: TargetShare) -> Remark:
    reached = percent(share.after)
    wanted = percent(share.wanted)
    if reached == wanted:
        reached = f"{share.after:.6f}"
        wanted = f"{share.wanted:.6f}"
    return (
        f"{share.name} is {reached} of the result, not the {wanted} that was asked for"
        " in ",
        Option("target"),
    )


# ---------------------------------------------------------------- who is set apart


def set_apart(case: Case) -> Blocks:
    """Who is set apart, with their number and rates."""
    lines = small_group_lines(case.facts.set_apart)
    for line in first(lines, case.rows, "group", case.rest):
        yield Paragraph(line)


def small_group_lines(groups: Sequence[GroupChange]) -> list[str]:
    """Who is set apart, and whether their own outcomes moved; nothing if nobody is."""
    by_name: dict[str, list[GroupChange]] = {}
    for group in groups:
        if group.rate_after >= 0:  # or nobody of it is left
            by_name.setdefault(group.name, []).append(group)
    lines = []
    for name, own in by_name.items():
        told = [
            f"{one.about} {percent(one.rate_before)} before,"
            f" {percent(one.rate_after)} after"
            for one in own
        ]
        text = "; ".join(first(told, _RATES, "rate"))
        people = "1 person" if own[0].rows == 1 else f"{own[0].rows:,} people"
        is_kept = all(abs(one.rate_after - one.rate_before) <= _OFF for one in own)
        done = "left as it is" if is_kept else "but treated like the others"
        lines.append(
            f"set apart, as too small to compare, {done}: {name} ({people}; {text})"
        )
    return lines


def means(case: Case) -> Blocks:
    """The mean of each group before and after, if equal means were asked for."""
    shown: Sequence[GroupMean] = case.facts.means
    if not shown:
        return
    rows = tuple(
        (f"mean of {mean.group}", f"{mean.before:.5g}", f"{mean.after:.5g}")
        for mean in shown[: case.rows]
    )
    heads = ("wanted equal", "before", "achieved")
    yield Table("Means of groups", heads, rows)
    for line in more(len(shown), case.rows, "mean", case.rest):
        yield Paragraph(line)


def groups(case: Case) -> Blocks:
    """How often each group has each outcome, outcome by outcome."""
    if not case.groups:
        return
    by_outcome: dict[tuple[str, str], list[GroupChange]] = {}
    for change in case.groups:
        by_outcome.setdefault((change.column, change.about), []).append(change)
    rows = tuple(
        (
            change.name,
            change.about,
            rate_text(change.rate_before),
            rate_text(change.rate_after),
        )
        for changes in by_outcome.values()
        for change in changes
    )
    yield Table("Groups", ("group", "", "before", "after"), rows)


def absent(case: Case) -> Blocks:
    """Groups and outcomes of the fit that no delivered row has."""
    if case.output is not None:
        yield from case.notes((line,) for line in case.output.absent)


def chance(case: Case) -> Blocks:
    """Whether the gap in the data may be chance."""
    for gap in case.facts.gaps:
        yield Paragraph(f"In the data: {gap_sentence(gap)}")


def gap_sentence(gap: Gap, people: str = "people") -> str:
    """How far apart two groups are, and whether that may be chance."""
    least = named(gap.columns, gap.lowest)
    most = named(gap.columns, gap.highest)
    outcome = named(gap.outcome[:1], gap.outcome[1:])
    ratio, low, high = map(_digits, (gap.ratio, *gap.interval))
    if gap.interval[1] < 1:
        chance = "is unlikely to be chance"
    elif gap.interval[0] < _CLEAR:
        chance = "may well be chance: the table is too small to tell"
    else:
        chance = "may well be chance: the table shows no clear gap"
    return (
        f"{people} with {least} have {outcome} {ratio} times as often as people"
        f" with {most} (between {low} and {high}). That {chance}."
    )


def named(columns: Sequence[str], levels: Sequence[object]) -> str:
    """Levels with the columns that they are of: sex 'Female' and age '[17, 31)'."""
    return " and ".join(
        f"{cut(name)} {shown(level)}"
        for name, level in zip(columns, levels, strict=True)
    )


def _digits(ratio: float) -> str:
    """Two digits, or more in order not to look like 0 or 1."""
    if ratio in (0, 1) or 0.005 <= ratio < 0.995 or ratio >= 1.005:
        return f"{ratio:.2f}"
    return f"{ratio:.4f}"


def asked(case: Case) -> Blocks:
    """What was asked for."""
    for wish in case.wishes:
        yield Paragraph(wish)


def small_groups(case: Case) -> Blocks:
    """Groups of few rows, where nothing else says what each group rests on."""
    if case.facts.costs is None:
        for name, rows in case.facts.small_groups.items():
            yield from case.notes([(f"small group: {name} ({counted(rows, 'row')})",)])
