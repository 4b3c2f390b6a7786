"""A wrong policy is named with its line, and is never taken for an unfair table."""

import re

import pytest

import clifiles
from clifiles import biased_table
from fairmaxent import InputError
from fairmaxent.gate.checking import check_policies
from fairmaxent.gate.policy import read_policies

GOOD = """\
data = "table.csv"
outcome = "income"
favourable = ">50K"
protected = ["sex"]
statistical_rate = 0.1
"""
# A line that is wrong, after those that are right, and what is said about it.
LINES = {
    "within = 3": "within is 3; it takes a list of columns",
    "within = true": "within is True",
    "within = 0.5": "within is 0.5",
    "within = [1, 2]": "within is [1, 2]",
    "within = {job = {a = 1}}": "within is {'job': {'a': 1}}",
    'within = "jbo"': "no column 'jbo'; did you mean 'job'?",
    'within = ["job", "job"]': "names a column twice",
    "within = {job = []}": "",
    'within = {job = "cok"}': "",
    'domain = "x"': "there is no option 'domain'",
    "domain = 3": "there is no option 'domain'",
    'domain = ["sex"]': "there is no option 'domain'",
    "[domain]": "there is no option 'domain'",
    '[domain.levels]\nsex = ["a"]': "there is no option 'domain'",
    "[[domain]]": "there is no option 'domain'",
    "[check]": "there is no option 'check'",
    "predictions = [1, 0]": "predictions is [1, 0]; it takes a text",
    "predictions = 1": "predictions is 1",
    'predictions = "prd"': "no column 'prd'",
    "against = 3": "against is 3; it takes a text",
    "against = {a = 1}": "against is",
    'against = ["table.csv"]': "against is",
    'against = "gone.csv"': "gone.csv",
    'against = "other.csv"': "in against: no column 'income'",
    'against = ""': "against is empty; name a file",
    'against = "a\\u0000b"': "null character",
    'against = "."': "",
    "confident = 1": "confident is 1; it takes true or false",
    'confident = "yes"': "confident is 'yes'",
    "confidence = 95": "confidence",
    'confidence = "0.95"': "confidence is '0.95'; it takes a number",
    "confidence = [0.95]": "confidence is [0.95]",
    "confidence = nan": "confidence",
    "confidence = true": "confidence is True",
    'groups = "all"': "groups is 'all'",
    "groups = 1": "groups is 1",
    'groups = ["each"]': "groups is ['each']",
    'compare_missing = "drop"': "compare_missing is 'drop'",
    'missing = "compare"': "'compare_missing' compares missing values",
    "compare_missing = 1979-05-27": "compare_missing",
    "weight = 3": "weight is 3",
    'weight = ["weight"]': "weight is",
    'weight = "wieght"': "did you mean 'weight'?",
    'weight = "job"': "weight",
    "representation_rate = 2": "representation_rate",
    'representation_rate = "high"': "representation_rate is 'high'",
    "representation_rate = -1": "representation_rate",
    "representation_rate = [0.8]": "representation_rate is [0.8]",
    "representation_rate = true": "representation_rate is True",
    "representation_rate = {rce = 0.8}": "names 'rce'",
    'representation_rate = {sex = "much"}': "representation_rate is",
    "representation_rate = 07:32:00": "representation_rate is",
    "statistical_rates = 0.8": "did you mean 'statistical_rate'?",
    "Protected = 'sex'": "did you mean 'protected'?",
    "data = 'other.csv'": "is not valid TOML",
    "x =": "is not valid TOML",
    "'x y' = 1": "there is no option 'x y'",
}
# Whole files, each with the line to look at; 0 where there is none.
FILES = {
    "": (0, "holds no policy"),
    "# nothing": (0, "holds no policy"),
    "protected = 5": (1, "protected is 5"),
    "protected = []": (1, "name protected columns"),
    "protected = 'sex'": (1, "and the outcome"),
    "protected = [['sex']]": (1, "protected is"),
    "protected = {sex = 1}": (1, "protected is"),
    "a = 1": (1, "'a' is not a section"),
    "\n\n[[b]]": (3, "'b' is not a section"),
    "[a]": (1, "name protected columns"),
    "[a]\nprotected = 'sex'\noutcome = 'income'": (2, "nothing to check"),
    "[a]\nprotected = 'sex'\noutcome = 1": (3, "outcome is 1"),
    "[a]\nprotected = 'sex'\noutcome = 'income'\nstatistical_rate = 0.8": (
        2,
        "the policy 'a' names no table",
    ),
    "[a]\nprotected = 'sex'\n[a.within]\nx = {}": (3, "within is"),
    "a" + ".a" * 3 + " = 1": (1, "there is no option 'a'"),
    "a = " + "[" * 5000 + "]" * 5000: (0, "is not valid TOML"),
}
PROJECTS = {
    "tool = 1": (1, "'tool' is not a section; begin each policy with [NAME]"),
    "[tool]\nfairmaxent = 1": (2, "'fairmaxent' is not a section"),
    "[tool.fairmaxent]\ncheck = 1": (2, "'check' is not a section"),
    "[tool.fairmaxent]\ncheck = 'x'": (2, "'check' is not a section"),
    "[[tool.fairmaxent.check]]\nprotected = 'sex'": (1, "'check' is not a section"),
    "[[tool.fairmaxent]]": (1, "'fairmaxent' is not a section"),
    "[[tool]]": (1, "'tool' is not a section"),
    "[tool.fairmaxent.check]\na = 3": (2, "'a' is not a section"),
    "[[tool.fairmaxent.check.a]]": (1, "'a' is not a section"),
    "[project]\nname = 'x'": (0, "holds no policy"),
    "[project]\n[tool.fairmaxent.check.a]\nwithn = 3": (3, "did you mean 'within'?"),
    "tool.fairmaxent.check.a.within = 3": (1, "within is 3"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("policies")
    biased_table().write_csv(folder / "table.csv")
    biased_table().drop("income").write_csv(folder / "other.csv")
    return folder


def refused(path, line, said):
    """What the command says: never that the table is unfair, nor that we have a bug."""
    (found,) = check_policies(read_policies(path))
    with pytest.raises((InputError, OSError)):
        found.raise_if_unfair()
    result = clifiles.run("check", "--policies", path, code=2)
    assert not result.stdout
    assert result.stderr.count("\n") == 1
    assert "bug" not in result.stderr
    assert said in result.stderr
    if line:
        assert re.search(rf"line {line}\b", result.stderr), result.stderr
    return result.stderr


def test_the_policy_without_a_mistake_is_none(folder):
    path = folder / "good.toml"
    for before in ("", "\ufeff"):  # some editors begin a file with a mark
        path.write_text(before + GOOD, encoding="utf-8")
        clifiles.run("check", "--policies", path)


@pytest.mark.parametrize("nothing", ['"none"', '{sex = "none"}'])
def test_what_is_said_to_be_taken_is(folder, nothing):
    path = folder / "good.toml"
    path.write_text(f"{GOOD}representation_rate = {nothing}\n", encoding="utf-8")
    clifiles.run("check", "--policies", path)


def test_an_empty_name_is_not_that_of_the_folder(folder):
    path = folder / "wrong.toml"
    path.write_text(GOOD.replace("table.csv", ""), encoding="utf-8")
    refused(path, 1, "data is empty; name a file")


def test_python_is_not_advised_where_toml_is_written(folder):
    path = folder / "wrong.toml"
    path.write_text(GOOD.replace("0.1", "nan"), encoding="utf-8")
    assert "None" not in refused(path, 5, "a rate must be above 0 and at most 1")


@pytest.mark.some(10)
@pytest.mark.parametrize("wrong", LINES)
def test_a_wrong_line_is_named(folder, wrong):
    path = folder / "wrong.toml"
    path.write_text(GOOD + wrong, encoding="utf-8")
    line = GOOD.count("\n") + 1
    refused(path, line, LINES[wrong])


@pytest.mark.parametrize("text", FILES)
def test_a_wrong_file_is_named(folder, text):
    path = folder / "wrong.toml"
    path.write_text(text, encoding="utf-8")
    refused(path, *FILES[text])


@pytest.mark.parametrize("text", PROJECTS)
def test_a_wrong_project_is_named(folder, text):
    path = folder / "pyproject.toml"
    path.write_text(text, encoding="utf-8")
    refused(path, *PROJECTS[text])


def test_other_encodings_are_said(folder):
    path = folder / "wrong.toml"
    path.write_bytes(GOOD.encode("utf-16"))
    refused(path, 0, "is not valid TOML in UTF-8")


SECRET = "hunter2"
SECRETS = {
    "shadow": f"root:{SECRET}:19000:0:99999:7:::\nbin:*:19000::::::\n",
    "table": f"a,{SECRET}\n1,2\n",
    "ragged": f"a,{SECRET}\n1,2,3\n4\n",
    "quotes": f'a,"{SECRET}\n1,2\n',
    "key": f"-----BEGIN KEY-----\n{SECRET}\n-----END KEY-----\n",
    "env": f"PASSWORD={SECRET}\n",
    "one line": SECRET,
    "x.json": f'{{"password": "{SECRET}"}}\n',
    "x.jsonl": f'{{"password": "{SECRET}"}}\n{SECRET}\n',
    "x.parquet": f"PAR1{SECRET}PAR1",
    "x.xlsx": f"PK\x03\x04{SECRET}",
    "x.arrow": f"ARROW1\0\0{SECRET}",
}


@pytest.mark.some(4)
@pytest.mark.parametrize("key", ["data", "against"])
@pytest.mark.parametrize("name", SECRETS)
def test_a_file_that_a_policy_names_is_not_shown(folder, name, key):
    """Who may change a policy may not be allowed to read every file of the build."""
    (folder / name).write_text(SECRETS[name], encoding="utf-8")
    given = GOOD if key == "against" else GOOD.replace('data = "table.csv"\n', "")
    path = folder / "wrong.toml"
    path.write_text(f'{given}{key} = "{name}"\n', encoding="utf-8")
    assert SECRET not in refused(path, 0, "")
