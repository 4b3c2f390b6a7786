"""A typo never turns the gate off: 2 is a mistake, 3 is too few people, 1 is unfair."""

import json
from xml.etree import ElementTree

import polars as pl
import pytest
from junit_schemas import SCHEMAS, wrong_in

import clifiles
from fairmaxent.cli import group
from fairmaxent.gate.checking import check_policies
from fairmaxent.gate.policy import read_policies
from fairmaxent.gate.result import CODES, FORMS, worst

ROLES = "--outcome hired --favourable yes --protected sex"
LIMIT = f"{ROLES} --statistical-rate 0.8"
PAIR = "--outcome hired --favourable yes --protected sex,team"
BAD = "--confident --statistical-rate 0.8"


def table(counts, **columns):
    """People by sex: how many, and how many of them were hired."""
    rows = {"sex": [], "hired": []}
    for sex, (size, hired) in counts.items():
        rows["sex"] += [sex] * size
        rows["hired"] += ["yes"] * hired + ["no"] * (size - hired)
    return pl.DataFrame(rows | columns)


TABLES = {
    "fair.csv": table({"f": (400, 200), "m": (400, 200)}).with_columns(
        team=pl.Series(["a", "b"] * 400),
        house=pl.Series([str(row // 4) for row in range(800)]),
        site=pl.Series(["x", "y", "z", "x"] * 200),
        mass=pl.Series([1.0, 2.0] * 400),
        odd=pl.Series([-1.0, 2.0] * 400),
        score=pl.Series([0.2, 0.9] * 400),
    ),
    "unfair.csv": table({"f": (400, 20), "m": (400, 300)}),
    "few.csv": table({"f": (20, 8), "m": (20, 9)}),
    "one.csv": table({"f": (50, 20)}),
    "tiny.csv": table({"f": (3, 1), "m": (400, 200)}),
    "empty.csv": table({"f": (1, 1)}).head(0),
    "unknown.csv": pl.DataFrame({"sex": [None, None], "hired": ["yes", "no"]}),
    "hollow.csv": table({"f": (40, 20), "m": (40, 20)}).with_columns(
        team=pl.Series(["a"] * 40 + ["b"] * 40)
    ),
    # in team b nobody was hired
    "nobody.csv": pl.concat(
        [
            table({"f": (40, 20), "m": (40, 20)}).with_columns(team=pl.lit("a")),
            table({"f": (40, 0), "m": (40, 0)}).with_columns(team=pl.lit("b")),
        ]
    ),
    "gone.csv": table({"f": (400, 200), "m": (400, 200), "x": (400, 200)}),
    "shrunk.csv": table({"f": (400, 200), "m": (400, 200), "x": (20, 10)}),
    "twenty.csv": table({"f": (10, 5), "m": (10, 5)}),
    "fallen.csv": table({"f": (10, 2), "m": (10, 6)}),
}
WRONG = [
    # options
    "fair.csv",
    f"fair.csv {ROLES}",
    "fair.csv --outcome hired --statistical-rate 0.8",
    "fair.csv --protected sex --statistical-rate 0.8",
    f"fair.csv {ROLES} --statistical-rate 1.8",
    f"fair.csv {ROLES} --statistical-rate 0",
    f"fair.csv {ROLES} --statistical-rate -1",
    f"fair.csv {ROLES} --statistical-rate nan",
    f"fair.csv {ROLES} --statistical-rate high",
    f"fair.csv {ROLES} --statistical-rate 80%",
    f"fair.csv {ROLES} --statistical-rate sx=0.8",
    f"fair.csv {ROLES} --statistical-rate none",
    f"fair.csv {ROLES} --representation-rate 7",
    f"fair.csv {LIMIT} --confidence 95",
    f"fair.csv {LIMIT} --confidence 0",
    f"fair.csv {LIMIT} --confidence 1",
    f"fair.csv {LIMIT} --confidence sure",
    f"fair.csv {LIMIT} --confidnet",
    f"fair.csv {LIMIT} --smallest-group 2.5",
    f"fair.csv {LIMIT} --smallest-group 200%",
    f"fair.csv {LIMIT} --smallest-group few",
    f"fair.csv {LIMIT} --reference x",
    f"fair.csv {LIMIT} --reference team=a",
    f"fair.csv {PAIR} --statistical-rate 0.8 --reference f",
    f"fair.csv {PAIR} --statistical-rate sex=0.8 --groups joint",
    f"fair.csv {LIMIT} --groups all",
    f"fair.csv {LIMIT} --format pdf",
    f"fair.csv {LIMIT} -o check.pdf",
    f"fair.csv {LIMIT} -o fair.csv",
    f"fair.csv {LIMIT} --policies good.toml",
    f"fair.csv {LIMIT} --config gone.toml",
    f"fair.csv {LIMIT} --max-memory much",
    f"fair.csv more.csv {LIMIT}",
    # columns and levels
    "fair.csv --outcome hird --protected sex --statistical-rate 0.8",
    "fair.csv --outcome hired --protected sx --statistical-rate 0.8",
    "fair.csv --outcome hired --favourable ye --protected sex --statistical-rate 0.8",
    "fair.csv --outcome sex --protected sex --statistical-rate 0.8",
    f"fair.csv {LIMIT} --weight mas",
    f"fair.csv {LIMIT} --weight team",
    f"fair.csv {LIMIT} --weight odd",
    f"fair.csv {LIMIT} --within tem",
    f"fair.csv {LIMIT} --within team=c",
    f"fair.csv {LIMIT} --within sex",
    f"fair.csv {LIMIT} --cluster hose",
    f"fair.csv {LIMIT} --cluster site",
    f"fair.csv {LIMIT} --predictions scroe",
    f"fair.csv {LIMIT} --predictions score",
    f"fair.csv {LIMIT} --drop tem",
    f"fair.csv {LIMIT} --drop sex",
    f"fair.csv {LIMIT} --kinds tem:categorical",
    # files and tables
    f"gone.parquet {LIMIT}",
    f"{LIMIT}",
    f". {LIMIT}",
    f"empty.csv {LIMIT}",
    f"unknown.csv {LIMIT}",
    f"noise.parquet {LIMIT}",
    f"fair.csv {LIMIT} --against gone.parquet",
    f"fair.csv {LIMIT} --against noise.parquet",
    f"fair.csv {LIMIT} --against empty.csv",
    f"fair.csv {LIMIT} --against unknown.csv",
    f"fair.csv {LIMIT} -o no/such/folder/check.xml",
    # policies
    "",
    "--policies gone.toml",
    "--policies noise.parquet",
    "--policies typo.toml",
    "--policies half.toml",
    "fair.csv --policies typo.toml",
    "gone.parquet --policies good.toml",
    # what the policies would pass over
    "fair.csv --policies good.toml --statistical-rate 0.9",
    "fair.csv --policies good.toml --confident",
    "fair.csv --policies good.toml --config limits.toml",
    "fair.csv --policies good.toml --bins 3",
    "--policies full.toml --confidence 0.95",
    "--policies full.toml --delimiter ;",
]
# Right ones, which show that it is not the file that is wrong above.
RIGHT = [
    "fair.csv --policies good.toml --delimiter ,",
    "fair.csv --policies good.toml --format json --max-memory 4GB",
    "--policies full.toml",
]


SURE = f"{LIMIT} --confident"
SINCE = f"{ROLES} --against"
DECIDED = f"{ROLES} --confident --predictions guess"
SCORED = f"{ROLES} --confident --predictions score --threshold 0.5"
# Right calls that nobody can answer: too few people, or nobody to compare with.
UNDECIDABLE = [
    # one group, or one that is large enough
    f"one.csv {LIMIT}",
    f"one.csv {SURE}",
    f"one.csv {ROLES} --representation-rate 0.8",
    f"one.csv {ROLES} --statistical-difference 0.1",
    f"one.csv {ROLES} --equal-opportunity 0.8 --predictions guess",
    f"tiny.csv {LIMIT}",
    f"tiny.csv {SURE}",
    f"tiny.csv {ROLES} --statistical-difference 0.1",
    f"twenty.csv {LIMIT} --smallest-group 15",
    f"fair.csv {LIMIT} --smallest-group 500",
    f"fair.csv {ROLES} --representation-rate 0.8 --smallest-group 500",
    f"tiny.csv {LIMIT} --reference f",
    f"tiny.csv {LIMIT} --reference m",
    # an interval that holds the limit
    f"few.csv {SURE}",
    f"few.csv {SURE} --confidence 0.8",
    f"few.csv {SURE} --smallest-group 0",
    f"few.csv {SURE} --reference f",
    f"few.csv {ROLES} --confident --statistical-rate 0.95",
    f"few.csv {ROLES} --confident --representation-rate 0.95",
    f"few.csv {ROLES} --confident --statistical-difference 0.1",
    f"few.csv {DECIDED} --equal-opportunity 0.8",
    f"few.csv {DECIDED} --equalised-odds 0.8",
    f"few.csv {SCORED} --calibration 0.02",
    f"few.csv {SCORED} --statistical-rate 0.8",
    "fair.csv --outcome hired --protected sex --statistical-rate 1 --confident",
    f"fair.csv {ROLES} --statistical-rate 0.97 --confident --cluster house",
    f"fair.csv {ROLES} --statistical-rate 0.97 --confident --weight mass",
    # strata
    f"nobody.csv {LIMIT} --within team",
    f"nobody.csv {SURE} --within team",
    f"nobody.csv {LIMIT} --within team=b",
    f"hollow.csv {SURE} --within team",
    # since before
    f"fair.csv {SINCE} gone.csv",
    f"shrunk.csv {SINCE} gone.csv",
    f"fallen.csv {SINCE} twenty.csv",
    f"fallen.csv {SINCE} twenty.csv --smallest-group 0",
    f"twenty.csv {SINCE} twenty.csv",
    f"one.csv {SINCE} fair.csv",
    f"fair.csv {SINCE} one.csv",
]


JUNIT_CASES = ("testcase", "testcase/failure", "testcase/error")


@pytest.mark.some(6)
@pytest.mark.parametrize("typed", UNDECIDABLE)
def test_what_nobody_can_tell_ends_with_3(there, typed):
    done = clifiles.run("check", *typed.split(), code=3)
    assert "cannot tell" in done.stdout
    assert not done.stderr


def test_there_are_enough_undecidable_calls():
    assert len(set(UNDECIDABLE)) >= 30


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("codes")
    for name, rows in TABLES.items():
        every_third = pl.Series(
            [["yes", "no", "no"][row % 3] for row in range(len(rows))]
        )
        scores = pl.Series([(row % 10) / 10 for row in range(len(rows))])
        more = rows.with_columns(guess=every_third)
        if "score" not in rows.columns:
            more = more.with_columns(score=scores)
        more.write_csv(folder / name)
    (folder / "noise.parquet").write_bytes(b"PAR1 is not all of it")
    good = 'outcome = "hired"\nprotected = "sex"\nfavourable = "yes"\n'
    texts = {
        "good.toml": f"{good}statistical_rate = 0.8\n",
        "full.toml": f'{good}data = "fair.csv"\nstatistical_rate = 0.8\n',
        "limits.toml": "statistical_rate = 0.9\n",
        "typo.toml": f"{good}statistical_rat = 0.8\n",
        "half.toml": "".join(
            [
                f'[a]\n{good}data = "fair.csv"\nstatistical_rate = 0.8\n',
                f'[b]\n{good}data = "gone.parquet"\nstatistical_rate = 0.8\n',
                f'[c]\n{good}data = "unfair.csv"\nstatistical_rate = 0.8\n',
                f'[d]\n{good}data = "few.csv"\nstatistical_rate = 0.8\n'
                "confident = true\n",
                f'[e]\n{good}data = "fair.csv"\nstatistical_rate = 1.8\n',
            ]
        ),
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def there(folder, monkeypatch):
    monkeypatch.chdir(folder)


@pytest.mark.some(10)
@pytest.mark.parametrize("typed", WRONG)
def test_a_wrong_call_ends_with_2(there, typed):
    done = clifiles.run("check", *typed.split(), code=2)
    assert done.stderr.startswith("Error: "), done.output
    assert "bug" not in done.stderr


def test_there_are_enough_wrong_calls():
    assert len(set(WRONG)) >= 60


def test_a_bug_is_no_answer(there, monkeypatch):
    """Not even a bug of ours is taken for an unfair table."""
    monkeypatch.setattr("fairmaxent.gate.checking.checked", lambda *_: 1 / 0)
    done = clifiles.run("check", "fair.csv", *LIMIT.split(), code=2)
    assert "bug" in done.stderr


@pytest.mark.parametrize("typed", RIGHT)
def test_a_right_call_of_policies_in_a_file(there, typed):
    clifiles.run("check", *typed.split(), code=0)


@pytest.mark.parametrize("one", ["1", "1.0"])
def test_a_number_is_named_as_its_file_has_it_or_as_it_is_shown(one, tmp_path):
    path = tmp_path / "numbers.csv"
    rows = ["1.0,1.0", "1.0,0.0", "2.0,1.0", "2.0,0.0"] * 20
    path.write_text("\n".join(["sex,hired", *rows, ",1.0"]), encoding="utf-8")
    words = f"--outcome hired --favourable {one} --protected sex --reference {one}"
    done = clifiles.run("check", path, *words.split(), "--statistical-rate", 0.8)
    assert "all groups equal for outcome 1: 40 and 40 people" in done.stdout


def test_limits_that_are_typed_are_not_those_of_the_project(there, monkeypatch):
    """Without --protected, they are no reason to go by the file in the folder."""
    monkeypatch.setattr("fairmaxent.cli.gate.PROJECT", "full.toml")
    clifiles.run("check", code=0)
    typed = "--outcome hired --statistical-rate 0.99"
    done = clifiles.run("check", "fair.csv", *typed.split(), code=2)
    assert "name --protected columns" in done.stderr


@pytest.mark.parametrize(("name", "code"), [("fair.csv", 0), ("unfair.csv", 1)])
def test_an_answer_is_an_answer(there, name, code):
    clifiles.run("check", name, *LIMIT.split(), code=code)


def test_codes_are_those_of_the_command_line():
    assert CODES["error"] == group.USAGE
    assert [worst(pair) for pair in (["pass", "cannot tell"], ["fail", "error"])] == [
        "cannot tell",
        "error",
    ]


def test_every_policy_is_reported_and_every_file_is_written(there, tmp_path):
    paths = [tmp_path / f"all.{suffix}" for suffix in ("xml", "json", "md")]
    words = [word for path in paths for word in ("-o", path)]
    done = clifiles.run("check", "--policies", "half.toml", *words, code=2)
    junit, found, page = (path.read_text("utf-8") for path in paths)

    answers = [one["answer"] for one in json.loads(found)["checks"]]
    assert answers == ["pass", "error", "fail", "cannot tell", "error"]
    assert json.loads(found)["answer"] == "error"
    cases = list(ElementTree.fromstring(junit).iter("testcase"))
    assert [[one.tag for one in case] for case in cases] == [
        [],
        ["error"],
        ["failure"],
        ["error"],
        ["error"],
    ]
    for text in (done.stderr, junit, found, page):
        assert "gone.parquet" in text
        assert "1.8" in text
    assert done.stderr.count("Error: ") == 2
    assert "a: pass" in done.stdout


def test_a_typed_call_that_goes_wrong_writes_its_files(there, tmp_path):
    path = tmp_path / "one.xml"
    clifiles.run("check", "gone.parquet", *LIMIT.split(), "-o", path, code=2)
    (case,) = ElementTree.parse(path).getroot().iter("testcase")
    assert case[0].tag == "error"
    assert "gone.parquet" in case[0].get("message")


@pytest.mark.some(2)
@pytest.mark.parametrize("schema", SCHEMAS)
@pytest.mark.parametrize("name", ["half.toml", "typo.toml", "gone.toml"])
def test_junit_fits_both_schemas(there, name, schema):
    text = FORMS["junit"](check_policies(read_policies(name)))
    assert wrong_in(SCHEMAS[schema], text) == []


def test_junit_counts_what_its_suites_hold(there):
    """A limit that fails is a failure; what nobody can tell, or check, is an error."""
    results = check_policies(read_policies("half.toml"))
    suites = ElementTree.fromstring(FORMS["junit"](results))
    found = {}
    for suite in suites:
        counts = tuple(int(suite.get(key)) for key in ("tests", "failures", "errors"))
        found[suite.get("name")] = counts
        held = (len(suite.findall(path)) for path in JUNIT_CASES)
        assert counts == tuple(held)
    assert found == {
        "a": (1, 0, 0),
        "b": (1, 0, 1),
        "c": (1, 1, 0),
        "d": (1, 0, 1),
        "e": (1, 0, 1),
    }


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("<testsuites>", '<testsuites disabled="0">'),
        (' timestamp="', ' timestamp="on '),
        ("<properties />", ""),
        ("<system-out />", ""),
        (' type="fail"', ""),
        (' hostname="localhost"', ""),
        (' tests="1"', ""),
    ],
)
def test_the_schemas_refuse_what_is_wrong(there, before, after):
    text = FORMS["junit"](check_policies(read_policies("half.toml")))
    assert before in text
    wrong = text.replace(before, after)
    assert any(wrong_in(schema, wrong) for schema in SCHEMAS.values())
