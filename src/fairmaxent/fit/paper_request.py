"""What the paper's own fits are asked for."""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass


@dataclass(frozen=True)
class PaperRequest:
    """What :func:`fairmaxent.paper.fit` was asked for, by the paper's own names."""

    # What outputs ask of every request after the fit; the paper knows none of it.
    target = weight = within = privacy = forbid = likely = None
    release = False
    REFUSED = ()

    outcome: str
    protected: str
    _: KW_ONLY
    C: float
    prior: str
    theta: str
    tau: float
    solver: str
    favourable: object = None
    random_state: int | None = None  # the paper's fits have no seed of their own

    def words(self) -> Iterator[str]:
        """What was asked for, in one sentence."""
        yield (
            f"The paper's own configuration: prior q^{self.prior} with C ="
            f" {self.C:.3g}, expectation θ^{self.theta}, τ = {self.tau:.3g}."
        )
