"""Generated config files: each is used, or refused in one line.

``FUZZ_CONFIGS=5000 pytest tests/fuzz/test_config_files.py`` tries more of them.
"""

import os

import numpy as np
import pytest
from command_ends import prepared, run

from clifiles import QUIET, ROLES
from fairmaxent.cli.config import config_keys

CONFIGS = int(os.environ.get("FUZZ_CONFIGS", "60"))
SEED = int(os.environ.get("FUZZ_SEED", "0"))
KEYS = [
    key for key in config_keys() if key not in ("scheduler", "relabel", "estimate", "labeller")
]  # those train models
VALUES = (
    *("true", "0", "1", "3", "-1", "0.5", "1e-9", "inf", "nan", "1e400", "9" * 30, "1979-05-27", "07:32:00"),
    *('""', '"x"', '"none"', '"sex"', '"age"', '">50K"', '"tree"', '"joint"', '"compare"', r'"\u0000"', r'"\u202e"'),
    *("[]", '["sex"]', '["sex", "race"]', "[1, 2]", "[[1]]", "[{a=1}]", "[true]", '["age", "age"]'),
    *("{}", "{sex=1}", '{sex="x"}', "{sex={Female=0.5, Male=0.5}}", '{income="free"}', "{age=[1,2,3]}", '{"" = 1}'),
    *("100", '"race"', '"job=cook"', '["race", "job"]', '{race="White"}', '"domain.toml"', '"clean.csv"'),
    *("{sex=[", "'''", "= =", "#"),  # no TOML at all
)
DEBIAS = ["debias", "clean.csv", *QUIET, "-o", "fair.csv", "--model", "model.fme"]
# Commands that read a config file, with what they write.
COMMANDS = (
    (DEBIAS, ("fair.csv", "model.fme")),
    (["inspect", "clean.csv"], ()),
    ([*DEBIAS, "--epsilon", "100", "--domain", "domain.toml"], ("fair.csv", "model.fme")),
    (["rake", "clean.csv", "--margins", "margins.csv", "-o", "fair.csv"], ("fair.csv",)),
    (DEBIAS, ("fair.csv", "model.fme")),
    (["evaluate", "clean.csv", "clean.csv", "--attacks", "20"], ()),
)


@pytest.mark.parametrize("part", range(2))
def test_a_config_file_is_used_or_refused(part, tmp_path, monkeypatch):
    folder = prepared(tmp_path, monkeypatch)
    for number in range(CONFIGS // 2):
        rng = np.random.default_rng([SEED, part, number])
        chosen = rng.choice(KEYS, size=int(rng.integers(1, 4)), replace=False)
        lines = [f"{key} = {VALUES[int(rng.integers(len(VALUES)))]}\n" for key in chosen]
        (folder / "c.toml").write_text("".join(lines), encoding="utf-8")
        arguments, outputs = COMMANDS[number % len(COMMANDS)]
        roles = [*(ROLES[:2] if "outcome" not in chosen else []), *(ROLES[2:] if "protected" not in chosen else [])]
        needed = roles if arguments[0] == "debias" else []
        run([*arguments, "--config", "c.toml", *needed], folder, outputs)
