"""Dagster's web server as the desk uses it: told to start a run on a batch, unless one is about to start anyway."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from policies.errors import FailsafeError
from policies.run_tags import BATCH, WHY, batch_tag
from resources.adapters.http_url import check_url

if TYPE_CHECKING:
    import httpx

VARIABLE: Final = "FAILSAFE_DAGSTER_URL"

TIMEOUT_SECONDS: Final = 5.0
"""For one question. Dagster makes an execution plan before it answers, which takes some tenths of a second."""

ABOUT_TO_START: Final = """
query AboutToStart($tags: [ExecutionTag!]!) {
  runsOrError(filter: {tags: $tags, statuses: [QUEUED, NOT_STARTED, STARTING]}, limit: 1) {
    __typename
    ... on Runs { results { runId } }
  }
}
"""

JOBS: Final = """
query Jobs {
  repositoriesOrError {
    __typename
    ... on RepositoryConnection { nodes { name location { name } jobs { name } } }
  }
}
"""

START: Final = """
mutation Start($run: ExecutionParams!) {
  launchRun(executionParams: $run) { __typename }
}
"""


class RunNotStarted(FailsafeError):
    """Dagster started no run; its sensor for landed approvals will, within seconds."""


class DagsterWeb:
    """One web server, known by its URL. Used by one thread at a time."""

    def __init__(self, url: str) -> None:
        """Makes no connection yet.

        Raises:
            DefinitionError: this is no plain address of a web server.
        """
        check_url(url, _hosts(url), VARIABLE)
        self._graphql = f"{url.rstrip('/')}/graphql"
        self._jobs: dict[str, tuple[str, str]] = {}

    @classmethod
    def from_environment(cls) -> DagsterWeb | None:
        """The one that FAILSAFE_DAGSTER_URL names, or None where it is not set.

        Raises:
            DefinitionError: it holds something else than an address.
        """
        url = os.environ.get(VARIABLE)
        return cls(url) if url else None

    def start_run(self, workflow: str, batch: str) -> bool:
        """Start a run on a batch as the sensor for landed approvals would; False where one is about to start.

        A run that is queued or starting will see whatever was committed before this question.

        Raises:
            RunNotStarted: there was no answer in time, or none that says that a run was started.
        """
        import httpx  # costs a third of a second, which a desk without Dagster's URL does not pay

        tags = {BATCH: batch_tag(workflow, batch)}
        try:
            # The address is the operator's; whatever a proxy or a redirect would reach is not.
            with httpx.Client(timeout=TIMEOUT_SECONDS, trust_env=False, follow_redirects=False) as client:
                found = self._ask(client, ABOUT_TO_START, "runsOrError", "Runs", tags=_listed(tags))
                if found["results"]:
                    return False
                self._start(client, f"{workflow}_process_batch", batch, tags)
        except (httpx.HTTPError, ValueError, KeyError, TypeError) as error:
            raise RunNotStarted(f"Dagster gave no usable answer ({type(error).__name__})") from error
        return True

    def _start(self, client: httpx.Client, job: str, batch: str, tags: dict[str, str]) -> None:
        repository, location = self._place(client, job)
        partition = {"dagster/partition": batch, "dagster/partition_set": f"{job}_partition_set"}
        run = {
            "selector": {"repositoryLocationName": location, "repositoryName": repository, "jobName": job},
            "runConfigData": {},
            "executionMetadata": {"tags": _listed(tags | partition | {WHY: "approval_landed"})},
        }
        try:
            self._ask(client, START, "launchRun", "LaunchRunSuccess", run=run)
        except RunNotStarted:
            self._jobs.clear()  # its location may have been renamed or moved since
            raise

    def _place(self, client: httpx.Client, job: str) -> tuple[str, str]:
        """Repository and code location of a job: looked up once, and again when it was not there."""
        if job not in self._jobs:
            connection = self._ask(client, JOBS, "repositoriesOrError", "RepositoryConnection")
            places = [
                (node["name"], node["location"]["name"])
                for node in connection["nodes"]
                if any(one["name"] == job for one in node["jobs"])
            ]
            if len(places) != 1:
                raise RunNotStarted(f"{len(places)} code locations of Dagster have a job {job}")
            self._jobs[job] = places[0]
        return self._jobs[job]

    def _ask(self, client: httpx.Client, query: str, field: str, wanted: str, **variables: Any) -> dict[str, Any]:
        """What a question brought, if it is of the wanted kind."""
        response = client.post(self._graphql, json={"query": query, "variables": variables})
        answer: dict[str, Any] = response.raise_for_status().json()["data"][field]
        if answer["__typename"] != wanted:
            raise RunNotStarted(f"Dagster answered {str(answer['__typename'])[:100]}")
        return answer


def _listed(tags: dict[str, str]) -> list[dict[str, str]]:
    return [{"key": key, "value": value} for key, value in tags.items()]


def _hosts(url: str) -> list[str]:
    """The host of an address: whoever sets the variable may name any."""
    try:
        return [urlsplit(url).hostname or ""]
    except ValueError:
        return []
