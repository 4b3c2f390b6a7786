"""Golden cases: relabelling, and the estimate of what a model trained on the result will do."""

from __future__ import annotations

from fairmaxent import Estimate, Relabel, debias
from golden_results import array, certificate_numbers, csv, decimals, outputs, without_column
from golden_tables import discrete, hiring


def _relabelled(table, protected, *, relabel, **options):
    fit = debias(table, "y", protected, random_state=2, relabel=relabel, **options)
    return outputs(fit, table) | {
        "weights": array(fit.weights()),
        **without_column("weighed", fit.weigh(table), "fair_weight"),
        "iid": csv(fit.sample(60, iid=True, random_state=1)),
        "added": csv(fit.top_up()),
    }


def relabel_probabilities():
    relabel = Relabel(parity="probabilities", labeller="tree")
    return _relabelled(hiring(), ["z"], relabel=relabel, favourable="p")


def relabel_threshold():
    relabel = Relabel(parity="predictions", threshold=0.35, labeller="tree")
    return _relabelled(hiring(), ["z"], relabel=relabel, favourable="p", statistical_rate=0.9)


def relabel_three_outcomes():
    relabel = Relabel(parity="predictions", labeller="tree")
    return _relabelled(discrete((2, 2), outcomes=3), ["z0", "z1"], relabel=relabel, groups="joint")


def _estimated(output, **options):
    estimate = Estimate(output=output, student="tree")
    fit = debias(hiring(), "y", "z", favourable="p", random_state=0, estimate=estimate, **options)
    return {
        "certificate": certificate_numbers(fit.certificate),
        "shown": decimals(str(fit.certificate)),
        "warnings": len(fit.certificate.warnings),
        "rows": csv(fit.sample(50)),
    }


def estimate_rows():
    return _estimated("rows")


def estimate_relabelled():
    return _estimated("weights", relabel=Relabel(parity="predictions", labeller="tree"))
