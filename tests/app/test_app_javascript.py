"""The pure parts of the page's JavaScript, run by node."""

import json
import shutil
import subprocess
from importlib.resources import files

import pytest

SCRIPT = """
import { moved, rounded } from "./shares.js";
import { dotCounts } from "./charts.js";
import { joined, sentence } from "./format.js";
import { keptRates } from "./form.js";
const set = [[0, 450], [1, 450], [2, 60], [3, 40], [3, 50]], held = [];
let parts = [400, 300, 200, 100];
for (const [index, value] of set) {
  parts = moved(parts, index, value, held);
  held.push(...held.splice(0).filter((one) => one !== index), index);
}
const group = (name, before, after) => ({ group: name, outcome: "yes", people_before: 40, people_after: 40,
  name: `SEX = ${name}`, rate_before: before, rate_after: after, with_before: 40 * before, with_after: 40 * after });
const people = [group("women", 0.1, 0.3), group("men", 0.5, 0.4), group("others", 0.2, 0.21)];
const many = Array.from({ length: 9 }, (_, index) => group(`town ${index}`, 0.5, index < 4 ? 0.9 - 0.1 * index : 0.3));
const told = [people, [people[2]], [group("1", 0.1, 0.3), group("No", 0.5, 0.4)], many].map(sentence);
const forms = [{ name: "rate", start: 1 }, { name: "sizes", optional: true, start: 1 }];
const one = { protected: ["sex"], rate: 0.8, sizes: null }, both = ["sex", "race"];
const wishes = [[one, both], [{ ...one, rate: 1 }, both], [{ ...one, groups: "joint", protected: both }, ["race"]],
  [{ protected: both, rate: { sex: 0.8, race: 0.7 }, sizes: { sex: 0.5, race: null } }, ["race", "age"]]];
const kept = wishes.map(([options, columns]) => keptRates(forms, options, columns));
const same = [[undefined, { "sí": "Sí", constructor: "Constructor" }],
  [{ 1: "yes ", 2: "no" }, { "yes ": "Yes", NO: "no" }]].map(([given, names]) => joined(given, names));
console.log(JSON.stringify([parts, rounded([1, 1, 1]), dotCounts(people[0]), told, kept, same]));
process.exit();
"""


def test_shares_dots_and_the_sentence(tmp_path):
    node = shutil.which("node") or pytest.skip("node is not here to run JavaScript")
    for file in (files("fairmaxent.app") / "static").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "run.js").write_text(SCRIPT)
    done = subprocess.run(
        [node, "run.js"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    parts, thirds, dots, (told, same, coded, of_many), kept, one_name = json.loads(
        done.stdout
    )
    # a level that was renamed before is known by its code
    assert one_name == [
        {"sí": "Sí", "constructor": "Constructor"},
        {"1": "Yes", "2": "no", "NO": "no"},
    ]
    # the wish of a column stays with it
    assert kept == [
        {"rate": {"sex": 0.8, "race": 1}, "sizes": None},
        {"rate": 1, "sizes": None},
        {"rate": 0.8, "sizes": None},
        {"rate": {"race": 0.7, "age": 1}, "sizes": None},
    ]
    # what was set stays; when all are, the oldest follows
    assert parts == [440, 450, 60, 50]
    assert (sum(thirds), dots) == (1000, {"dots": 40, "before": 4, "after": 12})
    assert told == "8 more women would have “yes”, 4 fewer men; nobody else changes."
    assert same.startswith("No group gets the outcome")  # by less than one person
    assert coded == "8 more of SEX = 1 would have “yes”, 4 fewer of SEX = No."
    assert (
        of_many
        == "4 of 9 groups would have “yes” more often, 5 less often, most of all town"
        " 0, town 1, town 2."
    )
