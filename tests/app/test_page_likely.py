"""Groups that nobody wrote down, on the page: noticed, offered, compared, and taken."""

import io

import numpy as np
import polars
import pytest

from appserver import answered, choose, drop, enter, menu, refused, running

pytestmark = pytest.mark.slow


def table():
    """Probabilities of two groups, and who was hired."""
    rng = np.random.default_rng(3)
    chances = rng.dirichlet([0.3, 0.3], 1500)
    group = rng.random(1500) < chances[:, 1]
    hired = rng.random(1500) < np.where(group, 0.5, 0.25)
    return polars.DataFrame(
        {
            "p_old": chances[:, 0],
            "p_young": chances[:, 1],
            "town": rng.choice(["n", "s"], 1500),
            "hired": np.where(hired, "yes", "no"),
        }
    )


def test_probabilities_are_offered_and_made_fair(page, tmp_path):
    with running(tmp_path) as client:
        enter(page, client)
        file = io.BytesIO()
        table().write_csv(file)
        drop(page, "hired.csv", file.getvalue())
        page.wait_for_selector("text=hired.csv")
        choose(page, outcome="hired", good=["yes"])
        with menu(page, "groups-menu") as part:
            part.get_by_text("p_old and p_young add up to 1").wait_for()
            part.get_by_role("button", name="From names or addresses").click()
            answered(page)
            asked = part.get_by_label("Groups known as probabilities").input_value()
        assert asked == "group: old=p_old,young=p_young"
        said = page.locator("#answer").inner_text()
        assert "Nobody's group is known for certain. Assumed: names" in said
        assert "whatever is assumed" in said
        assert not page.problems


def test_the_server_fits_what_the_page_asks(tmp_path):
    path = tmp_path / "hired.csv"
    table().write_csv(path)
    with running(tmp_path, data=path) as client:
        state = client.get("/api/state")[1]
        (offered,) = state["look"]["likely"]
        assert offered["asked"] == "group: old=p_old,young=p_young"
        asked = {
            "outcome": "hired",
            "protected": [],
            "favourable": ["yes"],
            "likely": offered["asked"],
        }
        answer = client.post(
            "/api/fit", {"table": state["table"]["number"], "options": asked}
        )
        refused(answer, "needs to know what tells the group")
        fit = client.fit(state, **asked, told_by="names")
        assert (
            "--likely 'group: old=p_old,young=p_young' --told-by names"
            in (fit["command"])
        )
        (rate,) = [one for one in fit["see"]["rates"] if one["wanted"] is not None]
        assert rate["after"] == pytest.approx(1)
        (likely,) = [one for one in fit["see"]["told"] if one["key"] == "likely"]
        titles = [one["label"] for one in likely["tables"]]
        assert titles == ["Rates by the true groups"]
        client.fit(state, **asked, told_by="names", mode="weights")
        assert client.work("take")["state"] == "done"
