"""``fairmaxent verify``: whether a saved model holds what it states."""

from __future__ import annotations

from dataclasses import dataclass

import click

from fairmaxent.cli import text
from fairmaxent.cli.next_step import free_name, next_step
from fairmaxent.cli.option_types import FILE
from fairmaxent.cli.options import taking
from fairmaxent.cli.output_options import json_field


@dataclass(frozen=True)
class VerifyOptions:
    """How the answer is given."""

    as_json: bool = json_field()


@click.command(epilog="Exit code 0: verified. 5: damaged, forged, or not a model.")
@click.argument("model", type=FILE, metavar="MODEL")
@taking(VerifyOptions, "wanted")
def command(model: str, wanted: VerifyOptions) -> None:
    """Check MODEL, a file that 'fairmaxent debias --model' or fit.save() wrote.

    Digests, types and ranges are checked, and the certificate is made again from the rows and the distribution in the
    file. Nothing in the file is run.

    \b
    fairmaxent verify model.fme
    """
    from fairmaxent.fit.storage import verify

    with text.step(f"checking {model}"):
        verified = verify(model)
    if not wanted.as_json:
        text.say(str(verified), data_on_stdout=False)
        command = ["fairmaxent", "sample", model, "-n", "1000", "-o", free_name(model, "rows", ".csv")]
        text.say(f"\n{next_step('draw rows from it', command)}", data_on_stdout=False)
        return
    record = {name: getattr(verified, name) for name in ("sha256", "version", "holds", "unverified")}
    rates = {name: getattr(verified.certificate, name) for name in ("wanted", "before", "achieved")}
    text.say(text.as_json({"model": model, "verified": True} | record | rates), data_on_stdout=False)
