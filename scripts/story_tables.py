"""The tables of the stories, simulated with fixed seeds: `python
scripts/story_tables.py` writes them to docs/stories/.

No person in them is real. What is unfair, and who did not answer, is put in on purpose,
so the stories know the truth.
"""

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np

STORIES = Path(__file__).parents[1] / "docs" / "stories"

# Share of the applicants, share of women among them, and how hard it is to be hired
# there.
DEPARTMENTS = {
    "Technik": (0.40, 0.22, 0.9),
    "Vertrieb": (0.25, 0.45, 1.0),
    "Verwaltung": (0.35, 0.68, 1.5),
}
DEGREES = {"Ausbildung": 0.45, "Bachelor": 0.33, "Master": 0.22}
# of women, though they are as able
ASKED_MORE = {"Technik": 0.4, "Vertrieb": 0.35, "Verwaltung": 0.1}
TITLE = "Stadtwerke Musterstadt: Bewerbungen 2023 bis 2025 (Stand 31.12.2025)"


def applications(number: int = 1260) -> list[dict[str, Any]]:
    """Applications to a utility in three years; women and men are equally able, and
    more is asked of women.
    """
    random = np.random.default_rng(2025)
    shares = np.array([share for share, _, _ in DEPARTMENTS.values()])
    days = np.sort(random.integers(0, 3 * 365, number))
    rows = []
    for index, day in enumerate(days):
        department = str(random.choice(list(DEPARTMENTS), p=shares))
        _, women, hard = DEPARTMENTS[department]
        sex = str(
            random.choice(["weiblich", "männlich", ""], p=[women, 0.992 - women, 0.008])
        )
        degree = str(random.choice(list(DEGREES), p=list(DEGREES.values())))
        ability, age = random.normal(), int(np.clip(random.gamma(6, 2.6) + 19, 19, 62))
        experience = max(0, round(random.uniform(0.2, 0.9) * (age - 19)))
        score = float(
            np.clip(62 + 13 * (0.8 * ability + 0.6 * random.normal()), 5, 100).round(1)
        )
        impression = (
            ability
            + 0.03 * experience
            + 0.25 * (degree == "Master")
            + 0.5 * random.normal()
        )
        rows.append(
            {
                "Nr.": 1001 + index,
                "Eingang": date(2023, 1, 1) + timedelta(days=int(day)),
                "Jahr": (date(2023, 1, 1) + timedelta(days=int(day))).year,
                "Abteilung": department,
                "Geschlecht": sex or None,
                "Alter": age,
                "Abschluss": degree,
                "Berufsjahre": experience,
                "Testergebnis": score,
                "Eingestellt": (
                    "ja"
                    if impression > hard + ASKED_MORE[department] * (sex == "weiblich")
                    else "nein"
                ),
            }
        )
    return rows


def write_workbook(path: Path) -> None:
    """The applications as an office would send them: a title, a gap, the table, its
    sum, and a sheet with a legend.
    """
    from openpyxl import Workbook
    from openpyxl.styles import Font

    rows, book = applications(), Workbook()
    sheet = book.active
    sheet.title = "Bewerbungen"
    for line in ([TITLE], [], list(rows[0]), *(list(row.values()) for row in rows)):
        sheet.append(line)
    sheet.append(
        [
            "Summe",
            *[None] * (len(rows[0]) - 2),
            sum(row["Eingestellt"] == "ja" for row in rows),
        ]
    )
    sheet["A1"].font = Font(bold=True, size=14)
    for cell in sheet[3]:
        cell.font = Font(bold=True)
    for (cell,) in sheet.iter_rows(
        min_row=4, max_row=sheet.max_row - 1, min_col=2, max_col=2
    ):
        cell.number_format = "DD.MM.YYYY"
    legend = book.create_sheet("Legende")
    legend.append(["Testergebnis", "Punkte im Eignungstest, 0 bis 100"])
    book.save(path)


# ---------------------------------------------------------------- a survey

# What the register of residents knows: the shares of everybody of working age.
MARGINS = {
    "sex": {"female": 0.51, "male": 0.49},
    "age": {"18-29": 0.26, "30-44": 0.36, "45-66": 0.38},
    "district": {"Centre": 0.35, "North": 0.40, "South": 0.25},
}
EDUCATION, HOURS = ("school", "apprenticeship", "degree"), ("part time", "full time")
# How readily people answer: the young, men, and the centre less.
ANSWERS = {
    "female": 1.0,
    "male": 0.75,
    "18-29": 0.45,
    "30-44": 0.8,
    "45-66": 1.0,
    "Centre": 0.6,
    "North": 1.0,
    "South": 0.9,
}


def survey(number: int = 3600) -> list[dict[str, str]]:
    """Answers to whether the employer paid for training in the last year; women get
    less of it for the same work.
    """
    random, rows = np.random.default_rng(2026), []
    while len(rows) < number:
        person = {
            name: str(random.choice(list(shares), p=list(shares.values())))
            for name, shares in MARGINS.items()
        }
        if random.random() > np.prod([ANSWERS[level] for level in person.values()]):
            continue
        learned = random.choice(
            3, p=[0.2, 0.45, 0.35] if person["age"] != "45-66" else [0.25, 0.5, 0.25]
        )
        full = random.random() < (0.88 if person["sex"] == "male" else 0.55)
        chance = (
            0.12
            + 0.12 * learned
            + 0.1 * full
            - 0.09 * (person["sex"] == "female")
            + 0.1 * (person["age"] == "18-29")
        )
        paid = "yes" if random.random() < chance else "no"
        rows.append(
            person
            | {
                "education": EDUCATION[learned],
                "hours": HOURS[int(full)],
                "training": paid,
            }
        )
    return rows


if __name__ == "__main__":
    write_workbook(STORIES / "applications.xlsx")
    answers = survey()
    lines = [",".join(answers[0]), *(",".join(row.values()) for row in answers)]
    (STORIES / "survey.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
