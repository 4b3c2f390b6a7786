"""The one look that a private fit takes at the table."""

from __future__ import annotations

from fairmaxent.data.draws import generator
from fairmaxent.data.roles import Reading
from fairmaxent.fit.problem import Problem, cell_values
from fairmaxent.fit.request import Request
from fairmaxent.privacy.budget import Privacy
from fairmaxent.privacy.measurements import Noise
from fairmaxent.privacy.model import PrivateReading, check_visible, learn_private_model, private_reading
from fairmaxent.privacy.refusals import after_spending
from fairmaxent.progress import Progress


def read_privately(
    data: Reading, request: Request, privacy: Privacy, noise: Noise, progress: Progress
) -> PrivateReading:
    """Measure the rows within the budget, and go on with others, drawn from what was measured.

    What is wrong with the request is found before anything is spent; that looks at what was declared, and at no row.
    """
    values = cell_values(request, data.roles, data.table, None, None)
    rules = Problem.of(data.roles, data.table, request, values=values).rules
    progress("measure", 0.0)
    model = learn_private_model(data.table, data.roles, privacy, rules=rules, noise=noise)
    with after_spending(privacy):
        check_visible(model, data.roles)
        return private_reading(data, model, generator(request.random_state))
