"""What the page says of a fit: all that is told of it, and nothing of its own that can
be false.

The page is drawn by node; what it shows is compared with objects and with pandas.
"""

import re
from importlib.resources import files

import numpy as np
import polars
import pytest

import fairmaxent
from appserver import NO_PAGE, people, run
from fairmaxent.app.page_options import as_labelled
from fairmaxent.app.shown import cells_of, curve, quick_fit, seen
from fairmaxent.fit.pipeline import read_frame
from fairmaxent.plain_text import plain_json
from fairmaxent.progress import silent
from fairmaxent.telling.case import Weight, texts_of
from fairmaxent.telling.entries import entries_of

# Everything that the page draws for an answer, as text.
DRAWN = (
    NO_PAGE
    + """
globalThis.document = { addEventListener() {}, getElementById: () => null };
const { store } = await import("./store.js");
const { seePart } = await import("./see.js");
const { detailPart } = await import("./numbers.js");
const text = (one) => {
  if (one === null || one === undefined || typeof one === "boolean") return "";
  if (Array.isArray(one)) return one.map(text).join("\\n");
  if (typeof one !== "object") return String(one);
  return one.props.hidden ? "" : `${one.props.title ?? ""}\\n${text(one.props.children)}`;
};
const drawn = ({ see, options }) => {
  Object.assign(store, { options, answer: { see, scenario: options, wishes: {} } });
  return [seePart(1000), detailPart()].map(text);
};
console.log(JSON.stringify(data.map(drawn)));
"""
)


def drawn(folder, see, **options):
    """The answer of the page, and its numbers, as texts on a line each."""
    usual = {"protected": ["sex"], "favourable": ["yes"], "outcome": "hired"}
    answer = {"see": plain_json(see), "options": {**usual, **options}}
    (texts,) = run(folder, DRAWN, [answer])
    return [re.sub(r"\s*\n\s*", "\n", text).replace("\u00a0", " ") for text in texts]


def fit_of(frame=None, protected="sex", **asked):
    asked = {"favourable": "yes", "estimate": None, "random_state": 0} | asked
    frame = people() if frame is None else frame
    return fairmaxent.debias(frame, "hired", protected, **asked)


def likely_people():
    """Probabilities of two groups, and who was hired."""
    rng = np.random.default_rng(3)
    chances = rng.dirichlet([2, 2], 1500)
    hired = rng.random(1500) < np.where(rng.random(1500) < chances[:, 1], 0.5, 0.25)
    outcomes = np.where(hired, "yes", "no")
    both = {"p_old": chances[:, 0], "p_young": chances[:, 1]}
    return polars.DataFrame({**both, "hired": outcomes})


def likely_fit():
    likely = fairmaxent.Likely(
        "group", {"old": "p_old", "young": "p_young"}, told_by="columns"
    )
    return fairmaxent.debias(
        likely_people(), "hired", likely, favourable="yes", random_state=0
    )


def small_group():
    """People, and seven of a group of its own."""
    seven = people(7).with_columns(sex=polars.lit("x"))
    return polars.concat([people(), seven])


def private_fit():
    levels = {"sex": ["f", "m"], "region": ["n", "s", "w"], "hired": ["no", "yes"]}
    domain = fairmaxent.Domain.declare(levels=levels)
    return fit_of(
        people(3000).drop("age"),
        domain=domain,
        privacy=fairmaxent.Privacy(epsilon=2, delta=1e-6),
    )


FITS = {
    "plain": fit_of,
    "private": private_fit,
    "likely": likely_fit,
    "a model": lambda: fit_of(model="logistic"),
    "an estimate": lambda: fit_of(estimate="rows"),
    "a limit that is in the way": lambda: fit_of(largest_weight=1.05),
    "a small group": lambda: fit_of(small_group()),
    "relabelled": lambda: fit_of(
        model=fairmaxent.Model("logistic", parity="probabilities")
    ),
    "means": lambda: fairmaxent.debias(
        people(), "age", "sex", equal_means=True, random_state=0
    ),
    "shares": lambda: fit_of(target={"region": {"n": 0.8, "s": 0.1, "w": 0.1}}),
}
MUST = {
    "private": {"promise", "spending"},
    "likely": {"likely"},
    "a model": {"made_for", "decisions", "decided_badly"},
    "an estimate": {"estimate"},
    "a limit that is in the way": {"missed"},
    "a small group": {"set_apart"},
    "relabelled": {"changed_outcomes"},
    "means": {"means"},
}


@pytest.mark.parametrize("kind", FITS)
def test_all_that_is_told_of_a_fit_is_on_the_page(tmp_path, kind):
    fit = FITS[kind]()
    shown = "\n".join(drawn(tmp_path, seen(fit)))
    keys = set()
    for entry in entries_of(least=Weight.FACT):
        blocks = [*entry.of(fit.case(spell=as_labelled))]
        if not blocks or entry.key == "groups":  # they are drawn, and counted elsewhere
            continue
        keys.add(entry.key)
        for said in texts_of(blocks):
            is_cut = said.startswith("and ")  # the page has room for all
            assert is_cut or said in shown, entry.key
        for table in blocks:
            for row in getattr(table, "rows", ()):
                assert "\n".join(filter(None, row)) in shown, entry.key
    assert MUST.get(kind, set()) <= keys


def test_noise_and_promise_of_a_private_fit_come_with_the_answer(tmp_path):
    fit = private_fit()
    answer, _ = drawn(tmp_path, seen(fit))
    cell, rows = fit.certificate.privacy.count_ranges
    assert "Private with ε = 2" in answer
    assert f"by up to {cell:,.0f}, and that of all rows by up to {rows:,.0f}" in answer


def test_what_a_model_decides_comes_with_its_intervals_and_not_as_nearly_equal(
    tmp_path,
):
    fit = fit_of(people(300), model=fairmaxent.Model("logistic", threshold=0.45))
    decisions = fit.certificate.decisions
    answer, _ = drawn(tmp_path, seen(fit))
    assert f"for {100 * decisions.decided:.1f}% of them" in answer
    for one in (*decisions.shares, *decisions.rates):
        assert f"{one.low:.4f} to {one.high:.4f}" in answer


def test_the_warning_stands_before_the_people(tmp_path):
    fit = fit_of(largest_weight=1.05)
    answer, _ = drawn(tmp_path, seen(fit))
    rate = fit.certificate.achieved["statistical_rate"]["sex"]
    assert rate < 0.999
    warned = answer.index(f"is {rate:.3f}, not 1.000")
    assert warned < answer.index("Each dot is one of 100")


@pytest.mark.parametrize("rate", [0.2, 1])
def test_shares_that_move_elsewhere_are_said(tmp_path, rate):
    wanted = {"n": 0.8, "s": 0.1, "w": 0.1}
    fit = fit_of(target={"region": wanted}, statistical_rate=rate)
    before = (people()["region"] == "n").mean()
    answer, _ = drawn(tmp_path, seen(fit))
    assert f"Shares of region: n from {before:.1%} to 80.0%" in answer
    stays = "As many people of each group of sex have “yes” in hired as before"
    own = fit.certificate.before["statistical_rate"]["sex"]
    why = f"{stays}: your data are at {own:.2f} already, and 0.20 is asked for."
    assert (why in answer) == (rate == 0.2)
    assert (stays in answer) == (rate == 0.2)
    assert "nothing" not in answer.lower()
    cost = 1 - fit.certificate.effective_rows / 600
    assert f"It costs {100 * cost:.0f} % of your data." in answer


def test_other_columns_say_what_changes_for_them(tmp_path):
    """Sizes, too, where only these change."""
    fit = fit_of(
        protected=["sex", "region"],
        statistical_rate={"sex": 1, "region": None},
        representation_rate={"sex": None, "region": 1},
    )
    options = {"protected": ["sex", "region"]}
    answer, _ = drawn(tmp_path, seen(fit), **options)
    sizes = fit.summary().filter(polars.col("column") == "region")
    most = sizes.sort("share_before").row(0, named=True)
    more = 600 * (most["share_after"] - most["share_before"])
    assert f"{more:.0f} more {most['group']}" in answer
    assert "would be in the table" in answer


def test_people_who_all_count_alike_are_said_to(tmp_path):
    answer, numbers = drawn(tmp_path, seen(fit_of(statistical_rate=0.2)))
    assert "600 rows count like 600: all count alike." in answer
    assert "It costs none of your data." in answer
    assert "\n1.00\n" in numbers


def test_the_heaviest_of_likely_groups_is_a_person(tmp_path):
    fit = likely_fit()
    heaviest = float(fit.weights().max())
    parts = [group.most_weight for group in fit.certificate.costs.groups]
    assert max(parts) < heaviest - 0.005
    see = seen(fit)
    assert see["heaviest"] == heaviest
    told = {one["key"]: one for one in see["told"]}
    (costs,) = told["group_costs"]["tables"]
    # of a group it is the part that counts there, and is called so
    assert costs["heads"][5] == "largest weight in it"
    assert [row[5] for row in costs["rows"][:2]] == [f"{part:.1f}" for part in parts]
    answer, numbers = drawn(tmp_path, see, protected=[], likely="group: …")
    assert f"the heaviest counts {heaviest:.2f} times as much" in answer
    assert f"\n{heaviest:.2f}\n" in numbers


def test_cells_say_nothing_of_copies(tmp_path):
    request = fit_of().request
    quick = quick_fit(cells_of(read_frame(people(), request)), request)
    _, numbers = drawn(tmp_path, seen(quick, is_whole=False))
    assert "of drawn rows" not in numbers
    assert "most copies" not in numbers
    assert "is known when all rows are fitted" in numbers
    _, numbers = drawn(tmp_path, seen(fit_of()))
    assert "most copies" in numbers
    assert "is known when all rows" not in numbers


def test_a_model_that_is_worse_than_one_answer_is_said_so(tmp_path):
    rng = np.random.default_rng(1)
    by_chance = people(300).with_columns(
        hired=polars.Series(rng.choice(["yes", "no"], 300, p=[0.3, 0.7]))
    )
    fit = fit_of(by_chance, estimate=fairmaxent.Estimate(model="tree"))
    same = (by_chance["hired"] == "no").mean()
    own = fit.certificate.estimate.after.accuracy
    assert own < same
    _, numbers = drawn(tmp_path, seen(fit))
    assert f"right for {same:.1%} of them, this model for {own:.1%}." in numbers
    twin = people(300).with_columns(twin=polars.col("hired"))
    _, numbers = drawn(tmp_path, seen(fit_of(twin, estimate="rows")))
    assert "What a model will do" in numbers
    assert "The same answer" not in numbers


# The page to send as text, as it comes and when its first slider is at 0.5.
SENT = (
    NO_PAGE
    + """
import { writeFileSync } from "node:fs";
const { slim } = await import("./sending.js");
const curves = [{ ...data.curve, points: data.points.map(slim) }];
const scenario = { name: "one", see: data.see, isGood: true, wishes: {}, command: "",
  left: [], curves };
const all = { title: "people", version: "0", written: "today", scenarios: [scenario] };
globalThis.document = { documentElement: { clientWidth: 1000 },
  querySelector: () => null, getElementById: () => ({ textContent: JSON.stringify(all) }) };
let page;
globalThis.draw = (vnode) => { page = vnode; };
const script = readFileSync("sent.js", "utf8")
  .replace('import { render } from "./preact.js";', "const render = globalThis.draw;");
writeFileSync("sent-here.js", script);
await import("./sent-here.js");
const made = new Map(), sliders = [];
const text = (one) => {
  if (one === null || one === undefined || typeof one === "boolean") return "";
  if (Array.isArray(one)) return one.map(text).join("\\n");
  if (typeof one !== "object") return String(one);
  if (typeof one.type === "function") {
    const part = made.get(one.key) ?? Object.assign(new one.type(one.props), one);
    made.set(one.key, part);
    part.setState = (values) => Object.assign(part.state, values);
    return text(part.render(one.props));
  }
  if (one.type === "input") sliders.push(one.props);
  return text(one.props.children);
};
const before = text(page);
sliders[0].oninput({ target: { value: "0.5" } });
console.log(JSON.stringify([before, text(page)]));
"""
)


def test_a_page_to_send_says_what_is_so_where_its_slider_stands(tmp_path):
    asked = fit_of(largest_weight=1.3).request
    cells = cells_of(read_frame(people(), asked))
    fit = quick_fit(cells, asked)
    points = curve(fit, cells, "statistical_rate", "sex", silent)["points"]
    see = plain_json(seen(fit, is_whole=False))
    of_rate = {"kind": "statistical_rate", "columns": "sex"}
    sent = {"see": see, "points": points, "curve": of_rate}
    start, moved = run(tmp_path, SENT, sent)
    reached = fit.certificate.achieved["statistical_rate"]["sex"]
    assert f"is {reached:.3f}, not 1.000: that is the most" in start
    assert f"the heaviest counts {see['heaviest']:.2f} times" in start
    (there,) = [point["see"] for point in points if point["value"] == 0.5]
    assert f"the heaviest counts {there['heaviest']:.2f} times" in moved
    assert "that is the most" not in moved
    assert "You have moved a slider" in moved
    for told in (start, moved):  # of the data, wherever it stands
        assert "In the data: people with sex 'f' have hired 'yes'" in told
    costs = f"like {fit.certificate.effective_rows:,.0f}"
    assert costs in start
    assert costs not in moved
    assert "Costs by group" in start
    assert "Costs by group" not in moved


# Sentences that did not depend on numbers, and were false at times.
CLAIMS = (
    "decides nearly equally",
    "Nothing changes",
    "for everybody",
    "without a copy",
    "costs nothing",
    "differ a little",
    "none more than",
    "learned little",
    "get the same mean",
    "get the same rates",
    "then hold",
)


def test_no_sentence_of_the_page_claims_without_numbers():
    for file in (files("fairmaxent.app") / "static").iterdir():
        if file.name.endswith(".js") and file.name != "preact.js":
            script = file.read_text(encoding="utf-8")
            said = [claim for claim in CLAIMS if claim.lower() in script.lower()]
            assert said == [], file.name
