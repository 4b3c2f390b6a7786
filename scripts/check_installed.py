"""Check an installed fairmaxent: that it is not this checkout, has its data and types,
and does what is installed.
"""

import importlib.util
import subprocess
import sys
import tempfile
from importlib.metadata import metadata
from pathlib import Path

import fairmaxent

CHECKOUT = Path(__file__).resolve().parents[1] / "src"


def main() -> None:
    """Raise if anything is missing; print one line if nothing is."""
    home = Path(fairmaxent.__file__).parent
    assert CHECKOUT not in home.parents, (
        f"{home} is the checkout, not what was installed"
    )
    assert (home / "py.typed").is_file(), (
        "py.typed is missing, so type checkers would see no types"
    )
    assert metadata("fairmaxent")["Version"] == fairmaxent.__version__
    has_frames, has_commands = (
        importlib.util.find_spec(name) is not None for name in ("pandas", "click")
    )
    works = [
        (
            "a fit"
            if has_frames
            else check_refusal(
                "fairmaxent.datasets.load('adult')", "pip install pandas"
            )
        ),
        (
            "the demo"
            if has_commands
            else check_refusal(
                "from fairmaxent.cli import main; main()", "pip install click"
            )
        ),
    ]
    if has_frames:
        check_fit()
    if has_commands:
        check_demo()
    print(f"fairmaxent {fairmaxent.__version__}: {', '.join(works)}")


def check_refusal(code: str, advice: str) -> str:
    """What needs a library that is not installed says which."""
    done = subprocess.run(
        [sys.executable, "-c", f"import fairmaxent; {code}"],
        capture_output=True,
        text=True,
    )
    assert done.returncode != 0
    assert advice in done.stderr, done.stderr
    return advice


def check_fit() -> None:
    """A table that comes with the package is made fair."""
    adult = fairmaxent.datasets.load("adult").frame
    fit = fairmaxent.debias(
        adult, "income", "sex", favourable=">50K", weight="final_weight", estimate=None
    )
    assert abs(fit.certificate.achieved["statistical_rate"]["sex"] - 1) < 1e-6


def check_demo() -> None:
    """The command line writes rows, a model and a report."""
    with tempfile.TemporaryDirectory() as folder:
        demo = [sys.executable, "-m", "fairmaxent", "demo", "--out", folder]
        subprocess.run(demo, check=True, capture_output=True)
        files = {path.name for path in Path(folder).iterdir()}
    assert {"fair.csv", "fit.fme", "report.html"} <= files, files


if __name__ == "__main__":
    main()
