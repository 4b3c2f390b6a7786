"""What Take makes: the files, and the command and the Python that make the same
bytes.
"""

import shlex

import pytest

from appserver import DOMAIN, OPTIONS, downloaded, opened, people, staff
from fairmaxent.app.page_options import as_labelled
from fairmaxent.cli.group import group as commands

STAFF = 'levels.promoted = ["no", "yes"]\nlevels.level = [1, 2, 3]\n'
READ = {
    "bins": {"age": [18, 30, 45, 60]},
    "kinds": {"level": "categorical"},
    "representation_rate": None,
}
CASES = {
    "rows": {},
    "weights": {"mode": "weights"},
    "top-up": {"mode": "top-up", "representation_rate": 1.0},
    "relabelled": {
        "model": "boosting",
        "parity": "probabilities",
        "mode": "weights",
    },
    "for a model": {
        "model": "logistic",
        "threshold": 0.4,
        "hide_protected": True,
        "mode": "weights",
    },
    "two columns": {
        **{
            "protected": ["sex", "region"],
            "representation_rate": {"sex": 0.9, "region": None},
        },
        **{
            "statistical_rate": {"sex": 1.0, "region": 0.8},
            "largest_weight": 4.0,
            "drop": ["age"],
        },
    },
    "columns read differently": (
        READ | {"order": {"region": ["w", "s", "n"]}, "max_levels": 30}
    ),
    "equal means": {
        "outcome": "age",
        "favourable": [],
        "equal_means": True,
        "representation_rate": None,
    },
    "judged in the report": {"evaluate": True, "representation_rate": None},
    "public values": {
        "release": True,
        "domain": DOMAIN + STAFF,
        "representation_rate": None,
    },
    "shares": {
        "target": {"sex": {"f": 0.6, "m": 0.4}},
        "representation_rate": None,
        "compare_missing": True,
    },
    "free outcome": {
        "target": {"hired": "free"},
        "iid": True,
        "rows": 80,
        "random_state": 7,
        "base": "product",
    },
    "many at once": (
        READ
        | {
            "within": {"region": ["n", "s"]},
            "further_outcomes": {"promoted": ["yes"]},
            "detail": "bins",
            "purpose": "to see",
        }
        | {
            "target": {"level": {"1": 0.2, "2": 0.3, "3": 0.5}},
            "forbid": [{"level": "1", "region": "w"}],
        }
    ),
    "identifier": {"keep_columns": ["person"], "representation_rate": None},
    "to share": {"release": True, "representation_rate": None},
    "names": {"representation_rate": None},
}
LEVELS = {"levels": {"region": {"n": "north", "s": "elsewhere", "w": "elsewhere"}}}
# Parquet is read where it is, so what is made from it takes another way; the options
# are the same.
SCANNED = [
    "rows",
    "weights",
    "top-up",
    "relabelled",
    "to share",
    "columns read differently",
    "public values",
    "names",
]
QUICK = [
    *((case, ".csv") for case in ("weights", "two columns", "many at once", "names")),
    ("rows", ".parquet"),
]
REPEATED = [(case, ".csv") for case in CASES] + [(case, ".parquet") for case in SCANNED]


def with_slow_marks(cases, quick):
    """Every case, those that are not quick with the slow tests."""
    return [
        pytest.param(*case, marks=[] if case in quick else [pytest.mark.slow])
        for case in cases
    ]


@pytest.mark.some(1)
@pytest.mark.parametrize(("case", "suffix"), with_slow_marks(REPEATED, QUICK))
def test_the_command_and_the_python_repeat_it_byte_for_byte(
    client, case, suffix, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    frame = (
        people(person=[f"P{number:05d}" for number in range(600)])
        if case == "identifier"
        else staff()
    )
    state, content = opened(client, f"people{suffix}", frame)
    (tmp_path / f"people{suffix}").write_bytes(content)
    if case == "names":
        state = client.done(
            "/api/read", {"table": state["table"]["number"], "options": LEVELS}
        )
        assert ["elsewhere", "north"] in [
            column["choices"] for column in state["look"]["columns"]
        ]
    answer = client.fit(state, **{**OPTIONS, **CASES[case]})
    job = client.work("take")
    assert job["state"] == "done", job
    files = {
        name: body
        for name, (status, _, body) in downloaded(
            client, job["result"]["files"]
        ).items()
    }
    assert [file["what"] for file in job["result"]["files"]][1:3] == [
        "Saved fit",
        "Report",
    ]

    tokens = shlex.split(answer["command"])
    for name in ("people-domain.toml",) if "people-domain.toml" in files else ():
        (tmp_path / name).write_bytes(files[name])
    # The reports differ in how they name options, and in nothing else.
    monkeypatch.setattr("fairmaxent.cli.output.as_typed", as_labelled)
    with pytest.raises(SystemExit) as ended:
        commands.main(tokens[1:], "fairmaxent")
    assert ended.value.code == 0
    for name, body in files.items():
        if name.endswith(".html"):
            continue
        assert (tmp_path / name).read_bytes() == body, name
    report = (tmp_path / "people-report.html").read_text(encoding="utf-8")
    assert "named as on the command line" in report
    report = report.replace("named as on the command line", "named as in the app")
    assert report == files["people-report.html"].decode("utf-8")

    table = next(name for name in files if "-fair" in name)
    (tmp_path / table).unlink()
    exec(compile(answer["python"], "snippet", "exec"), {})
    assert (tmp_path / table).read_bytes() == files[table]


def test_a_download_is_never_a_page(client):
    state, _ = opened(client)
    client.fit(state, representation_rate=None)
    files = client.work("take")["result"]["files"]
    for status, headers, _ in downloaded(client, files).values():
        lowered = {name.lower(): value for name, value in headers.items()}
        assert status == 200
        assert lowered["content-disposition"].startswith("attachment")
        assert lowered["content-type"] == "application/octet-stream"
    # files of another scenario are not mixed up
    client.fit(state, representation_rate=None, random_state=1)
    assert client.get("/api/state")[1]["files"] == []
    assert {status for status, *_ in downloaded(client, files).values()} == {409}


@pytest.mark.more
def test_a_name_that_cannot_be_typed_still_has_its_python(client):
    name = "a\nb"
    state, _ = opened(client, frame=people().rename({"sex": name}))
    answer = client.fit(
        state,
        outcome="hired",
        protected=[name],
        favourable=["yes"],
        representation_rate=None,
    )
    assert answer["command"].startswith("#")
    assert repr(name) in answer["python"]
