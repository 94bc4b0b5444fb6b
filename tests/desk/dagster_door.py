"""A web server that answers as Dagster's would: each question is checked against Dagster's own schema."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from dagster_graphql.schema import create_schema
from graphql import GraphQLSchema, OperationDefinitionNode, parse, validate

JOB = "refunds_process_batch"


class Door:
    """What is said at the door, and what it answers."""

    def __init__(self) -> None:
        self.url = ""
        self.started: list[dict[str, Any]] = []
        self.asked: list[dict[str, str]] = []
        self.connections = 0
        self.live = False
        """A run on the batch is queued or starting."""
        self.delay = 0.0
        self.status = 200
        self.launch = "LaunchRunSuccess"
        self.jobs = {"a_location": ["other_job"], "the_location": [JOB]}

    def wait_for(self, runs: int) -> None:
        """Wait until so many runs were started."""
        give_up = time.monotonic() + 10
        while len(self.started) < runs:
            assert time.monotonic() < give_up, self.started
            time.sleep(0.01)

    def answer(self, query: str, variables: dict[str, Any]) -> dict[str, Any]:
        """The data of one answer."""
        document = parse(query)
        problems = validate(_schema(), document)
        assert not problems, problems
        [operation] = document.definitions
        assert isinstance(operation, OperationDefinitionNode)
        assert operation.name
        if operation.name.value == "AboutToStart":
            self.asked.append({one["key"]: one["value"] for one in variables["tags"]})
            return {"runsOrError": {"__typename": "Runs", "results": [{"runId": "r"}] if self.live else []}}
        if operation.name.value == "Jobs":
            nodes = [
                {"name": "__repository__", "location": {"name": name}, "jobs": [{"name": job} for job in jobs]}
                for name, jobs in self.jobs.items()
            ]
            return {"repositoriesOrError": {"__typename": "RepositoryConnection", "nodes": nodes}}
        if self.launch == "LaunchRunSuccess":
            self.started.append(variables["run"])
        return {"launchRun": {"__typename": self.launch}}


@contextmanager
def door() -> Iterator[Door]:
    """A door on loopback while the block runs."""
    found = Door()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            found.connections += 1
            assert self.path == "/dagster/graphql"
            said = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            time.sleep(found.delay)
            answer = json.dumps({"data": found.answer(said["query"], said["variables"])}).encode()
            self.send_response(found.status)
            self.send_header("Content-Length", str(len(answer)))
            self.send_header("Location", found.url)
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_arguments: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.url = f"http://127.0.0.1:{server.server_port}/dagster/"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@cache
def _schema() -> GraphQLSchema:
    schema: GraphQLSchema = create_schema().graphql_schema
    return schema
