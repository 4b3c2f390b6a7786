"""Words that names of columns and levels are made of, in several languages, without accents and in small letters.

They only ever suggest something: what is proposed from them is shown with its reason, and users decide.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection
from typing import Literal

Meaning = Literal["good", "bad", "yes", "no", "high", "low"]

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_LONG = 7  # letters of a word that may be part of a longer one: "ausfall" in "kreditausfall", "default" in "defaulted"


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Names of outcomes of which it is good to have them, bad to have them, or neither.
GOOD_OUTCOMES = _words(
    "income salary wage earnings hired hire employed admitted admission admit accepted acceptance approved approval "
    "granted offer offered passed pass promoted promotion selected shortlisted graduated graduation survived survival "
    "success successful qualified eligible repaid paid creditworthy completed invited awarded "
    "einkommen gehalt lohn eingestellt zugelassen zulassung bewilligt genehmigt angenommen bestanden befordert "
    "erfolg ausgewahlt kreditwurdig eingeladen zusage "
    "revenu salaire embauche admis accepte approuve accorde reussi reussite promu "
    "ingreso ingresos salario contratado admitido aceptado aprobado concedido ascendido exito "
    "reddito stipendio assunto ammesso accettato approvato concesso promosso "
    "renda aprovado aceito contratada promovido inkomen aangenomen toegelaten goedgekeurd geslaagd"
)
BAD_OUTCOMES = _words(
    "default defaulted recid recidivism recidivated reoffend reoffended reoffense rearrest rearrested arrest arrested "
    "churn churned attrition fraud fraudulent dropout delinquent delinquency bankrupt bankruptcy denied denial "
    "rejected rejection declined refused failed fail failure terminated fired layoff died death dead deceased "
    "mortality readmitted readmission convicted conviction guilty risk late overdue chargeoff exited left quit deny "
    "ausfall ruckfall ruckfallig abgelehnt ablehnung durchgefallen gekundigt kundigung abbruch betrug verstorben "
    "defaut refuse rejete echec echoue recidive abandon impago moroso rechazado reprobado suspenso reincidencia "
    "abandono respinto bocciato recidiva inadimplente inadimplencia reprovado rejeitado afgewezen gezakt wanbetaling"
)
NEUTRAL_OUTCOMES = _words(
    "outcome target label class y result decision status response verdict credit loan score grade deposit subscribed "
    "purchased clicked diagnosis zielvariable klasse ergebnis entscheidung kredit note resultat decision cible classe "
    "resultado decision clase objetivo risultato decisione esito classe resultaat besluit"
)
MONEY = _words(
    "income salary wage earnings score grade points gpa einkommen gehalt lohn note punkte revenu salaire ingreso "
    "ingresos salario reddito stipendio renda inkomen"
)

# Characteristics that laws against discrimination name; people are rarely grouped by the second kind.
PROTECTED = _words(
    "sex gender geschlecht sexe genre sexo genero sesso genere geslacht "
    "black white colour color skin "
    "race races racial ethnicity ethnic ethnicgroup ethnie ethnische rasse raza etnia razza raca afkomst "
    "disability disabled handicap handicapped behinderung behindert discapacidad disabilita deficiencia "
    "religion religious faith religione religiao konfession godsdienst caste indigenous minority "
    "age alter edad eta idade leeftijd "
    "pregnant pregnancy schwanger orientation transgender "
    "foreigner foreign auslander migrationshintergrund migration migrant immigrant"
)
MAYBE_PROTECTED = _words(
    "nationality citizenship nationalitat staatsangehorigkeit nationalite nacionalidad cittadinanza nacionalidade "
    "country herkunft origin birthplace language sprache marital married familienstand civil veteran parent children "
    "relationship single"
)
GROUPS_BY_VALUE = tuple(
    map(
        _words,
        (
            "male female other diverse nonbinary unknown",
            "m f o d x u",
            "m w d",
            "man woman",
            "men women",
            "mannlich weiblich divers",
            "homme femme",
            "hombre mujer",
            "uomo donna",
            "maschio femmina",
            "h f",
            "white black asian hispanic latino other caucasian native indigenous mixed african",
        ),
    )
)
MEN_AND_WOMEN = (
    _words("m male man men boy mannlich mann homme hombre masculino uomo maschio masculin maennlich h"),
    _words("f female woman women girl w weiblich frau femme mujer femenino donna femmina feminin vrouw"),
)

# Levels.
_LEVELS: dict[Meaning, frozenset[str]] = {
    "good": _words(
        "approved approve accepted accept granted hired admitted passed pass good great excellent success successful "
        "paid repaid survived alive employed selected offer offered promoted graduated graduate completed qualified "
        "eligible creditworthy won favourable favorable bestanden angenommen bewilligt genehmigt zugelassen "
        "eingestellt gut erfolgreich admis accepte approuve accorde reussi embauche bon aprobado aceptado admitido "
        "concedido bueno "
        "approvato accettato ammesso promosso buono aprovado aceito bom geslaagd goedgekeurd aangenomen toegelaten goed"
    ),
    "bad": _words(
        "denied deny rejected reject refused declined failed fail bad poor default defaulted late overdue died dead "
        "deceased unemployed dropout withdrawn recidivated reoffended churned ineligible unqualified unfavourable "
        "unfavorable durchgefallen abgelehnt schlecht nichtbestanden refuse rejete echec echoue mauvais rechazado "
        "denegado reprobado suspenso malo respinto bocciato cattivo reprovado rejeitado mau gezakt afgewezen slecht"
    ),
    "yes": _words("yes y true t 1 ja j oui o si sim s wahr vrai positive"),
    "no": _words("no n false f 0 nein non nao nee falsch faux negative -1"),
    "high": _words("high hoch haut alto alta hoog above"),
    "low": _words("low niedrig bas bajo baja basso bassa baixo baixa laag below"),
}
_NOT = _words("not no non nicht kein keine ne pas niet never")
OPPOSITES: dict[Meaning, Meaning] = {
    "good": "bad",
    "bad": "good",
    "yes": "no",
    "no": "yes",
    "high": "low",
    "low": "high",
}

TOTALS = _words("total totals totale sum summe subtotal grandtotal gesamt insgesamt overall zusammen totaal suma somma")


def plain(text: str) -> str:
    """Return a text without accents, in small letters, with single spaces.

    >>> plain("  Männlich "), plain("CREDIT  risk")
    ('mannlich', 'credit risk')
    """
    folded = unicodedata.normalize("NFKD", text)
    kept = "".join(mark for mark in folded if not unicodedata.combining(mark))
    return " ".join(kept.casefold().split())


def words_in(name: str) -> list[str]:
    """Return the words that the name of a column is made of.

    >>> words_in("two_year_recid"), words_in("isHired"), words_in("Jährliches Einkommen")
    (['two', 'year', 'recid'], ['is', 'hired'], ['jahrliches', 'einkommen'])
    """
    folded = "".join(mark for mark in unicodedata.normalize("NFKD", name) if not unicodedata.combining(mark))
    return [word.casefold() for word in _WORD.findall(folded)]


def named_in(name: str, vocabulary: Collection[str]) -> str | None:
    """Return the first word of a vocabulary that a name holds; long words may be part of longer ones.

    >>> named_in("loan_default", BAD_OUTCOMES), named_in("Kreditausfall", BAD_OUTCOMES), named_in("bracelet", PROTECTED)
    ('default', 'ausfall', None)
    """
    words = words_in(name)
    exact = next((word for word in words if word in vocabulary), None)
    if exact is not None:
        return exact
    return next(
        (known for word in words for known in sorted(vocabulary) if len(known) >= _LONG and known in word), None
    )


def meaning_of(level: str) -> Meaning | None:
    """Return what a level says about having an outcome; None if it says nothing known.

    >>> [meaning_of(level) for level in ("Approved", "not approved", ">50K", "Fully Paid", "b")]
    ['good', 'bad', 'high', 'good', None]
    """
    text = plain(level)
    if text.startswith(("<", "≤", "under ", "below ", "up to ")):
        return "low"
    if text.startswith((">", "≥", "over ", "above ", "more than ")):
        return "high"
    words = re.findall(r"-?\w+", text.replace("_", " "))
    whole = _meaning_of_word("".join(words)) if len(words) <= 2 else None
    if whole is not None:
        return whole
    negated = bool(words) and words[0] in _NOT
    known = {meaning for word in words[negated:] if (meaning := _meaning_of_word(word)) is not None}
    if len(words) < 2 or len(known) != 1:
        return None
    said = known.pop()
    return OPPOSITES[said] if negated else said


def _meaning_of_word(word: str) -> Meaning | None:
    return next((meaning for meaning, words in _LEVELS.items() if word in words), None)


def are_groups(levels: Collection[str]) -> bool:
    """Whether levels are those by which people are often grouped, such as female and male.

    >>> are_groups(["Female", "Male"]), are_groups(["M", "F"]), are_groups(["a", "b"]), are_groups(["f"])
    (True, True, False, False)
    """
    words = {plain(level) for level in levels}
    return len(words) > 1 and any(len(words & known) > 1 and words <= known for known in GROUPS_BY_VALUE)
