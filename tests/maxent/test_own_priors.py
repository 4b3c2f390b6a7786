"""Priors that users write: the conformance suite, bases by name, and their files."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fairmaxent import debias, load, paper
from fairmaxent.errors import FairMaxEntError, InputError
from fairmaxent.maxent.priors import bases
from oracle import KINDS, random_blocks, random_prior
from reproduction.independent_prior import Independent, Tilted, build, unpack
from tables import hiring


@pytest.fixture
def registered():
    paper.register_base("independent", build, unpack=unpack)
    yield
    for name in ("independent", "unpacked"):
        bases.BASES.pop(name, None)


def small(**fields):
    blocks = random_blocks(np.random.default_rng(3))
    rng = np.random.default_rng(1)
    shares = [rng.dirichlet(np.full(levels, 3.0)) for levels in blocks.levels]
    return replace(Independent(blocks, shares), **fields)


# ---------------------------------------------------------------- conformance


@pytest.mark.some(3)
@pytest.mark.parametrize("kind", KINDS)
def test_our_own_priors_conform(kind):
    for seed in range(3):
        rng = np.random.default_rng([seed, KINDS.index(kind)])
        paper.check_prior(random_prior(rng, random_blocks(rng), kind))


def test_the_worked_example_conforms():
    paper.check_prior(small(), unpack=unpack)


def broken(kind):
    """A prior with one thing wrong."""

    class Wrong(Independent):
        def log_probability(self, codes):
            return super().log_probability(codes) + (kind == "sum") * 0.1

        def log_floor(self):
            return super().log_floor() + (kind == "floor")

        def tilt(self, potentials):
            tilted = super().tilt(potentials)
            if kind == "partition":
                return replace(tilted, log_partition=tilted.log_partition + 1e-3)
            if kind == "levels":
                return replace(tilted, parts=[part**1.01 for part in tilted.parts])
            if kind in wrong:
                name, method = wrong[kind]
                return type(kind, (Tilted,), {name: method})(
                    tilted.blocks, tilted.log_partition, tilted.parts
                )
            return tilted

        def pack(self):
            stored = super().pack()
            if kind == "pack":
                stored["shares"] = stored["shares"][::-1]
            return stored

    def copying(self, roots, rng, *, spread=False):
        """Details of the first row would be everybody's."""
        drawn = Tilted.draw(self, roots, rng)
        return replace(drawn, places=np.zeros(len(roots), dtype=int))

    def uniform(self, roots, rng, *, spread=False):
        others = [rng.integers(len(part), size=len(roots)) for part in self.parts[1:]]
        return paper.Drawn(np.column_stack([roots, *others]), np.full(len(roots), -1))

    wrong = {
        "pairs": ("pairs", lambda self: np.outer(self.levels, self.levels)),
        "joint": ("joint", lambda self, wanted: Tilted.joint(self, sorted(wanted))),
        "draw": ("draw", uniform),
        "places": ("draw", copying),
    }
    prior = small()
    return Wrong(prior.blocks, prior.shares)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("sum", "probabilities of all points"),
        ("floor", "log_floor"),
        ("partition", "log_partition"),
        ("levels", "levels"),
        ("pairs", "pairs"),
        ("joint", "joint"),
        ("draw", "χ²"),
        ("places", "places of draws"),
        ("pack", r"unpack\(blocks, pack\(\)\)"),
    ],
)
def test_whatever_is_wrong_is_named(kind, message):
    with pytest.raises(AssertionError, match=message):
        paper.check_prior(broken(kind), unpack=unpack)


def test_a_prior_is_checked_on_a_small_domain():
    class Large:
        blocks = type("Blocks", (), {"levels": (200, 200)})

    with pytest.raises(ValueError, match="at most 20,000 points"):
        paper.check_prior(Large())


# ---------------------------------------------------------------- a base by name


ASKED = {"favourable": "yes", "random_state": 0}


@pytest.mark.usefixtures("registered")
def test_a_base_of_ones_own_does_what_the_same_one_of_ours_does(tmp_path):
    frame = hiring(2, rows=600)
    ours = debias(frame, "hired", "sex", base="product", **ASKED)
    own = debias(frame, "hired", "sex", base="independent", **ASKED)
    for name, rates in ours.certificate.achieved.items():
        assert own.certificate.achieved[name] == pytest.approx(rates)
    assert_allclose(own.weights(), ours.weights(), rtol=1e-6)
    assert "'independent'" in str(own.certificate) or own.request.base == "independent"
    assert len(own.sample(100, random_state=1)) == 100
    own.save(tmp_path / "fit")
    assert_allclose(load(tmp_path / "fit").weights(), own.weights(), rtol=1e-9)
    del bases.BASES["independent"]
    with pytest.raises(FairMaxEntError, match=r"register_base\('independent'"):
        load(tmp_path / "fit")
    paper.register_base("independent", build)  # what it stores cannot be read
    with pytest.raises(FairMaxEntError, match=r"'independent', build, unpack=…\)"):
        load(tmp_path / "fit")


@pytest.mark.usefixtures("registered")
def test_a_base_that_cannot_be_saved_says_so(tmp_path):
    class Unpacked(Independent):
        pack = property()

    def build_unpacked(blocks, rows, root):
        made = build(blocks, rows, root)
        return Unpacked(made.blocks, made.shares)

    paper.register_base("unpacked", build_unpacked)
    fit = debias(hiring(2, rows=300), "hired", "sex", base="unpacked", **ASKED)
    with pytest.raises(FairMaxEntError, match="give the prior a pack"):
        fit.save(tmp_path / "fit")


@pytest.mark.usefixtures("registered")
def test_what_a_base_of_ones_own_is_refused_with():
    frame = hiring(2, rows=300)
    with pytest.raises(InputError, match="cannot know what is impossible"):
        debias(
            frame,
            "hired",
            "sex",
            base="independent",
            forbid=[{"town": "in", "sex": "f"}],
            **ASKED,
        )
    with pytest.raises(InputError, match="did you mean 'independent'"):
        debias(frame, "hired", "sex", base="independant", **ASKED)
    for name in ("tree", "", 3):
        with pytest.raises(InputError, match="give it a name of its own"):
            paper.register_base(name, build)


# ---------------------------------------------------------------- θ and the prior


COLUMNS = ["sex", "town", "hired"]


def paper_fit(**options):
    return paper.fit(
        hiring(2, rows=600)[COLUMNS], outcome="hired", protected="sex", **options
    )


@pytest.mark.usefixtures("registered")
def test_the_papers_fit_takes_a_prior_by_name():
    uniform = paper_fit()
    assert_allclose(paper_fit(prior="uniform").weights(), uniform.weights())
    product = paper_fit(prior="product", C=1.0)
    own = paper_fit(prior="independent", C=1.0)
    table = own.distribution.marginal(COLUMNS)["probability"]
    expected = product.distribution.marginal(COLUMNS)["probability"]
    assert_allclose(table, expected, rtol=1e-6)
    with pytest.raises(InputError, match="prior is 'q'"):
        paper_fit(prior="q")


def test_theta_is_what_the_fit_has_then():
    named = paper_fit(theta={"sex": {"f": 0.3, "m": 0.7}})
    shares = named.distribution.marginal(["sex"]).set_index("sex")["probability"]
    assert shares["f"] == pytest.approx(0.3, abs=1e-6)
    # θ^w of the others
    town = named.distribution.marginal(["town"]).set_index("town")["probability"]
    usual = paper_fit().distribution.marginal(["town"]).set_index("town")
    assert_allclose(town, usual["probability"], atol=1e-6)

    names = paper.feature_names(named.domain)
    assert names == ["sex=f", "sex=m", "town=in", "town=out", "hired=no", "hired=yes"]
    wanted = np.array([0.3, 0.7, 0.45, 0.55, 0.6, 0.4])
    listed = paper_fit(theta=wanted)
    found = [
        listed.distribution.marginal([name])["probability"].to_numpy()
        for name in COLUMNS
    ]
    assert_allclose(np.concatenate(found), wanted, atol=1e-6)
    assert "θ^own" in str(listed.certificate) or listed.request.theta == "own"


@pytest.mark.parametrize(
    ("theta", "message"),
    [
        ("x", "theta is 'x'"),
        ([0.5, 0.5], "there are 6 levels"),
        ({"sex": {"f": 0.5}}, "a positive share for each level"),
        ({"sex": {"f": 0.5, "m": 0.6}}, "must sum to 1"),
        ({"sax": {"f": 0.5}}, "did you mean 'sex'"),
        ({"sex": {"x": 0.5}}, "'x'"),
        ({"sex": 0.5}, "give a share for each level, by column"),
        ({"sex": {"f": "half", "m": 0.5}}, "theta is 'half'"),
        ({"sex": {"f": 10**400, "m": 0.5}}, "must be a positive share"),
        (..., "give a share for each level, by column"),
        ([0.5, "x"], "give a share for each level, by column"),
    ],
)
def test_a_theta_that_cannot_be_meant_is_refused(theta, message):
    with pytest.raises(FairMaxEntError, match=message):
        paper_fit(theta=theta)
