"""One option has one name: in Python, as it is typed, in a config file, on the page."""

import contextlib
import dataclasses
import inspect

import click
import pytest

import fairmaxent
from fairmaxent.app.page_options import _controls, forms
from fairmaxent.cli.config import config_keys, option_values
from fairmaxent.cli.group import group
from fairmaxent.cli.options import RecordOption
from fairmaxent.data.roles import Protected
from fairmaxent.debiasing import Fit
from fairmaxent.errors import InputError
from fairmaxent.fairness.compare import Compare, Compared
from fairmaxent.fit.request import Request
from fairmaxent.gate.audit import AuditRequest
from fairmaxent.gate.policy import Policy
from fairmaxent.options import FORMER, info_of
from fairmaxent.raking.raking import Raking
from fairmaxent.report import write_inspection_report, write_raking_report
from fairmaxent.report.report import ReportRequest
from fairmaxent.report.source import Filing

# What each command does, as Python has it.
FITTED = [
    *(fairmaxent.debias, fairmaxent.Privacy, fairmaxent.Likely),
    fairmaxent.Domain.infer,
]
PYTHON = {
    "inspect": [
        *(fairmaxent.inspect, fairmaxent.Domain.infer, fairmaxent.Privacy),
        fairmaxent.Likely,
        write_inspection_report,
    ],
    "debias": [*FITTED, fairmaxent.Model, Fit.sample, Fit.weigh, ReportRequest],
    "check": [fairmaxent.check, fairmaxent.Likely, fairmaxent.Domain.infer],
    "compare": [fairmaxent.compare, *FITTED],
    "evaluate": [fairmaxent.evaluate],
    "rake": [
        *(fairmaxent.rake, Raking.weigh, fairmaxent.Domain.infer),
        *(write_raking_report, Filing),
    ],
    "sample": [Fit.sample],
    "report": [ReportRequest],
    "document": [Fit.document, AuditRequest],
    "verify": [],
    "ledger": [fairmaxent.Privacy],
    "app": [],
    "demo": [],
}
# How a file is read and written: in Python that is the work of pandas and the like.
FILES = {
    *(field.name for field in dataclasses.fields(fairmaxent.files.reading.FileReading)),
    *("drop", "max_memory", "output", "output_format", "like_input", "force", "config"),
    *("readable_by_others", "save", "report", "json", "policies", "format"),
    *(
        "write_config",
        "write_domain",
        "out",
        "port",
        "no_browser",
        "resume",
        "scheduler",
    ),
}
# What Python has a method for, not an option.
METHODS = {
    "mode": "sample(), weights() and top_up()",
    "rows": "the first argument of sample()",
    "document": "verify_document()",
}
# What cannot be typed.
OBJECTS = {
    "progress": "a function that is called",
    "estimator": "a classifier; --model names one",
    "privacy": "a record; its options are typed",
    "confidence": "a call has one; a command has the usual one",
}
ALIASES = {"-o", "-n", "--seed", "--favorable", "--no-trade-off"}


def command_of(name):
    command = group.get_command(click.Context(group), name)
    assert command is not None
    return command


def options_of(name):
    return [
        option
        for option in command_of(name).params
        if isinstance(option, click.Option) and not option.hidden
    ]


def parameters_of(function):
    names = inspect.signature(function).parameters
    return {name for name in names if name not in ("self", "path", "source")}


@pytest.mark.parametrize("name", PYTHON)
def test_every_option_that_is_typed_has_its_name_in_python(name):
    known = {*FILES, *METHODS}.union(*map(parameters_of, PYTHON[name]))
    for option in options_of(name):
        typed = {*option.opts, *option.secondary_opts} - ALIASES
        (flag,) = typed
        spelled = flag.removeprefix("--").replace("-", "_")
        assert spelled in known, f"{name} {flag}"
        if isinstance(option, RecordOption):
            assert spelled == option.name == option.source.field.name


def test_every_command_is_looked_at():
    assert set(PYTHON) == set(group.list_commands(click.Context(group)))


@pytest.mark.parametrize("record", [Request, fairmaxent.Model, fairmaxent.Privacy])
def test_every_option_of_a_fit_is_typed_by_its_name(record):
    typed = {option.name for option in options_of("debias")}
    for field in dataclasses.fields(record):
        assert field.name in typed | OBJECTS.keys(), field.name


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (fairmaxent.inspect, "inspect"),
        (fairmaxent.check, "check"),
        (fairmaxent.evaluate, "evaluate"),
        (fairmaxent.rake, "rake"),
        (fairmaxent.compare, "compare"),
        (Fit.document, "document"),
    ],
)
def test_what_a_function_takes_is_typed_by_its_name(function, name):
    typed = {option.name for option in command_of(name).params}
    wanted = inspect.signature(function).parameters.values()
    for one in wanted:
        is_option = one.kind is one.KEYWORD_ONLY
        if is_option and one.name not in OBJECTS:
            assert one.name in typed, one.name


@pytest.mark.parametrize("name", ["inspect", "debias", "check", "compare", "rake"])
def test_a_config_file_has_the_same_names(name):
    command = command_of(name)
    for option in options_of(name):
        if isinstance(option, RecordOption) and option.info.in_files:
            value = 1
            if option.info.text == "flag":
                value = True
            elif isinstance(option.type, click.Choice):
                value = option.type.choices[0]
            # whether its value can be used is another matter
            with contextlib.suppress(click.UsageError):
                taken = option_values(command, {option.name: value}, "a.toml")
                assert [*taken] == [option.name]


def test_the_page_has_the_same_names():
    in_python = {source.field.name for source in _controls().values()}
    assert {*_controls()} == in_python
    for controls in forms().values():
        for control in controls:
            assert control["name"] in in_python
    typed = {option.name for option in options_of("debias")}
    assert {*_controls()} <= typed


def test_the_estimator_and_policies_have_the_same_names():
    own = {"rows"}  # as --rows
    options = {field.name for field in dataclasses.fields(Request)}
    estimator = inspect.signature(fairmaxent.FairMaxEnt).parameters
    assert {*estimator} - own <= options
    both = {field.name for field in dataclasses.fields(Policy)} & options
    assert {"compare_missing", "smallest_group", "groups", "within"} <= both


def test_a_name_means_one_thing_in_every_command():
    kinds = {}
    for name in PYTHON:
        for option in options_of(name):
            if isinstance(option, RecordOption):
                about = (option.info.text, option.info.choices)
                kinds.setdefault(option.name, set()).add(about)
    several = {name for name, found in kinds.items() if len(found) > 1}
    # "none" is a choice of debias only, which alone takes several outcomes; a seed and
    # a weight are what they are
    assert several <= {"estimate", "outcome"}


DOORS = {  # what each lacks, as it has no use for it
    fairmaxent.check: set(),
    fairmaxent.inspect: {"compare_missing"},
    fairmaxent.debias: {"reference", "cluster"},
    fairmaxent.metrics.representation_rate: {"favourable"},
    fairmaxent.metrics.statistical_rate: set(),
    fairmaxent.metrics.equal_opportunity: set(),
    fairmaxent.metrics.equalised_odds: set(),
    fairmaxent.metrics.calibration: {"likely", "within", "cluster"},
    fairmaxent.metrics.conditional_demographic_disparity: {"reference", "cluster"},
}


@pytest.mark.parametrize("door", DOORS)
def test_every_front_door_compares_with_the_same_options(door):
    parameters = inspect.signature(door).parameters
    declared = {field.name: field for field in dataclasses.fields(Compare)}
    assert declared.keys() - parameters.keys() == DOORS[door]
    for name in ("groups", "within", "compare_missing", "smallest_group", "weight"):
        if name in parameters:
            assert parameters[name].default == declared[name].default
    for name in DOORS[door]:
        with pytest.raises(TypeError, match=f"no option '{name}'"):
            door(None, *"yz", **{name: 1})


def test_the_types_of_what_is_compared_are_those_of_its_record():
    typed = Compared.__annotations__
    declared = {field.name: field.type for field in dataclasses.fields(Compare)}
    own = {"protected": Protected, "favourable": object}  # each metric names them
    assert declared == typed | own


def test_an_option_is_what_it_is_in_its_record_but_for_what_is_changed():
    compare, request, policy = (
        {field.name: info_of(field) for field in dataclasses.fields(record)}
        for record in (Compare, Request, Policy)
    )
    for name in compare.keys() & policy.keys():
        assert vars(policy[name]) == vars(compare[name])
    for name in compare.keys() & request.keys() - {"domain"}:
        same = {"text", "label", "choices", "flags", "metavar", "main"}
        for key in same:
            assert getattr(request[name], key) == getattr(compare[name], key)


@pytest.mark.parametrize("former", FORMER)
def test_a_former_name_is_answered_with_the_present_one(former):
    present = FORMER[former]
    with pytest.raises(TypeError, match=f"no option {former!r}") as raised:
        fairmaxent.debias(None, "y", "z", **{former: 1})
    assert present in str(raised.value)
    if former not in config_keys():
        with pytest.raises(InputError) as unknown:
            option_values(command_of("debias"), {former: 1}, "a.toml")
        assert present in str(unknown.value)


def test_a_former_name_that_is_typed_is_answered_as_it_is_typed(capsys):
    roles = ["debias", "t.csv", "--outcome", "y", "--protected", "z"]
    cases = [
        (["--train", "logistic"], "it is called --model"),
        (["--missing", "NA"], "--missing-text lists the texts"),
        (["--also", "x"], "--outcome takes several outcomes"),
        (["--pdf", "r.pdf"], "an .html report, which prints well from any browser"),
        (["--model", "kept.fme"], "To save the fit to a file, use --save."),
    ]
    for words, said in cases:
        with pytest.raises(SystemExit) as ended:
            group.main([*roles, *words])
        assert ended.value.code == 2
        assert said in capsys.readouterr().err
