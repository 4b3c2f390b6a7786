"""Readings: the rows in codes, read once for all scenarios that need the same of them."""

from __future__ import annotations

from dataclasses import replace

from fairmaxent.app.refusals import UnspentError
from fairmaxent.app.scenario import Scenario
from fairmaxent.data.roles import Reading
from fairmaxent.fit.pipeline import read_frame
from fairmaxent.fit.request import Request


class Readings:
    """The newest reading, and the newest private one: whatever is made from its noise later spends no more."""

    def __init__(self) -> None:
        self._plain: tuple[object, Reading] | None = None
        self._private: tuple[object, Reading] | None = None
        self.spent: list[str] = []  # the budget of each private look, as text

    def get(self, scenario: Scenario, request: Request, *, spend: bool) -> Reading:
        """Read the rows, unless they are there; a new private look needs leave to ``spend`` its budget."""
        key = _key(scenario, request)
        kept = self._plain if request.privacy is None else self._private
        if kept is not None and kept[0] == key:
            return kept[1]
        if request.privacy is not None:
            return self._look_privately(key, scenario, request, spend=spend)
        self._plain = None  # two tables need not be in memory at once
        data = _read(scenario, request)
        self._plain = key, data
        return data

    def _look_privately(self, key: object, scenario: Scenario, request: Request, *, spend: bool) -> Reading:
        if not spend:
            raise UnspentError
        self._private = None
        before = len(self.spent)
        self.spent.append(str(request.privacy))
        try:
            data = _read(scenario, request)
        except Exception as problem:
            if "has spent" not in str(problem):  # as `after_spending` says of what fails too late
                del self.spent[before:]
            raise
        self._private = key, data
        return data


def _read(scenario: Scenario, request: Request) -> Reading:
    frame = scenario.file.frame
    return read_frame(frame, scenario.with_domain(request, frame))


def _key(scenario: Scenario, request: Request) -> object:
    """All that the reading depends on."""
    roles = (request.outcome, request.also_names, request.protected_names, request.within_names, request.weight)
    columns = (scenario.drop, scenario.columns_as, scenario.domain_text, request.detail, request.release)
    if request.privacy is not None:
        noise = replace(request.privacy), request.forbid
        return repr((roles, columns, noise))
    return repr((scenario.needs_rows_in_memory, roles, columns, sorted(request.named_columns)))
