"""Check an installed fairmaxent: that it is not this checkout, has its data and types, and makes a table fair."""

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
    assert CHECKOUT not in home.parents, f"{home} is the checkout, not what was installed"
    assert (home / "py.typed").is_file(), "py.typed is missing, so type checkers would see no types"
    assert metadata("fairmaxent")["Version"] == fairmaxent.__version__
    adult = fairmaxent.datasets.load("adult").frame
    fit = fairmaxent.debias(adult, "income", "sex", favourable=">50K", weight="final_weight", estimate=None)
    assert abs(fit.certificate.achieved["statistical_rate"]["sex"] - 1) < 1e-6
    with tempfile.TemporaryDirectory() as folder:
        demo = [sys.executable, "-m", "fairmaxent", "demo", "--out", folder]
        subprocess.run(demo, check=True, capture_output=True)
        files = {path.name for path in Path(folder).iterdir()}
    assert {"fair.csv", "model.fme", "report.html"} <= files, files
    print(f"fairmaxent {fairmaxent.__version__} in {home}: the library, the command line and the report work")


if __name__ == "__main__":
    main()
