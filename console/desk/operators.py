"""Pages that only operators look at. What is done there is checked by the database all the same."""

from __future__ import annotations

from console.desk.desk import Visit
from policies.errors import NotPermitted

OPERATOR = "operator"


def is_operator(visit: Visit) -> bool:
    """Whether this person holds the role."""
    return OPERATOR in visit.person.roles


def require_operator(visit: Visit) -> None:
    """Raise unless this person may look at operators' pages.

    Raises:
        NotPermitted: they do not hold the role.
    """
    if not is_operator(visit):
        raise NotPermitted("this page is for operators; ask somebody who holds the role `operator`")
