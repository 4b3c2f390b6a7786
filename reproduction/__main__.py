"""Repeat the experiments of the paper: Table 2 and every figure.

Run from the root of the repository: ``python -m reproduction --quick``. It writes
table2.csv, curves.csv, runtimes.csv, the figures (SVG and PNG) and index.html, which
shows the numbers of the paper, of the authors' code and of fairmaxent side by side. It
can be stopped at any time: the same command continues where it stopped. COMPAS large
needs two files that are not shipped; without --download, or a folder of yours that has
them, it is left out, and you are told what to do.
"""

import argparse
import sys
from pathlib import Path

from fairmaxent.errors import FairMaxEntError
from reproduction.reproduce import reproduce, table_2_rows

OUT = Path(__file__).with_name("out")
INTERRUPTED = 130


def main(arguments: list[str] | None = None) -> None:
    """Read the command, run the experiments, and say where the page is."""
    asked = _parser().parse_args(arguments)
    try:
        if asked.data is not None:
            _print_rows(asked)
            return
        page, left_out = reproduce(
            asked.out,
            quick=asked.quick,
            workers=asked.workers,
            download=asked.download,
            progress=_show,
        )
    except KeyboardInterrupt:
        print(
            f"\nStopped. Finished work is kept in {asked.out}; the same command"
            " continues from there.",
            file=sys.stderr,
        )
        sys.exit(INTERRUPTED)
    except FairMaxEntError as problem:
        sys.exit(f"error: {problem}")
    for reason in left_out:
        print(f"Left out: {reason}", file=sys.stderr)
    print(f"Wrote {page}; open it in a browser")


def _print_rows(asked: argparse.Namespace) -> None:
    """Print some rows of Table 2 beside the paper's."""
    methods = [name for name in asked.methods.split(",") if name]
    rows = table_2_rows(
        asked.out,
        asked.data,
        methods,
        quick=asked.quick,
        workers=asked.workers,
        progress=_show,
    )
    print(rows.to_string(index=False, float_format="{:.3f}".format, na_rep=""))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="reproduction", description=__doc__)
    parser.add_argument(
        "--quick",
        action="store_true",
        help="run fewer repetitions, which takes a few minutes",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=OUT,
        help="folder for tables, figures, the page, and finished cells",
    )
    parser.add_argument(
        "--workers",
        type=int,
        help="number of parallel processes; by default one per core",
    )
    parser.add_argument(
        "--download",
        action="store_true",
        help="fetch the files of COMPAS large, which is not shipped",
    )
    parser.add_argument(
        "--data",
        help="only rows of Table 2 of this data set, which are printed",
    )
    parser.add_argument(
        "--methods",
        default="",
        help="of these methods, with commas between, e.g. raw,maxent_theta_w",
    )
    return parser


def _show(share: float) -> None:
    if sys.stderr.isatty():
        ending = "\n" if share >= 1 else ""
        print(f"\r{share:4.0%} of the cells", end=ending, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
