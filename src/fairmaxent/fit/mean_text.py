"""Group means in words: how far those of a numeric outcome are apart, before and after."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from fairmaxent.fit.facts import GroupMean
from fairmaxent.fit.learned import Learned

_NOTHING = 1e-6  # a difference that is the solver's, relative to the largest mean


def mean_lines(fit: Learned) -> Iterator[str]:
    """One sentence for each grouping; none if nobody asked for equal means."""
    means = fit.certificate.means
    for grouping in dict.fromkeys(mean.grouping for mean in means):
        strata = _by_stratum(fit, [mean for mean in means if mean.grouping == grouping])
        before = max(_gap([mean.before for mean in stratum]) for stratum in strata)
        after = max(_gap([mean.after for mean in stratum]) for stratum in strata)
        largest = max(abs(mean.after) for mean in means)
        now = "equal" if after <= _NOTHING * largest else f"up to {after:.4g} apart"
        yield (
            f"The mean of {fit.roles.names[0]} in the groups of {grouping}: up to {before:.4g} apart in the data, "
            f"{now} by the fair weights."
        )


def _by_stratum(fit: Learned, means: Sequence[GroupMean]) -> list[list[GroupMean]]:
    """Groups that are compared with each other; the name of a group ends with that of its stratum."""
    axes = fit.roles.strata_axes
    if not axes:
        return [list(means)]
    shape = [fit.roles.attributes[axis].size for axis in axes]
    names = [fit.roles.describe_group(axes, stratum) for stratum in np.ndindex(*shape)]
    parts = [[mean for mean in means if mean.group.endswith(f", {name}")] for name in names]
    return [part for part in parts if part]


def _gap(numbers: Sequence[float]) -> float:
    return max(numbers) - min(numbers)
