"""A payment, budget and mail provider to try the example against: it keeps its own ledger and can misbehave on request.

    python -m examples.expenses.sandbox_provider --port 8710 --ledger sandbox.db

Effects are made by POST with an `Idempotency-Key`, found again by `GET /effects/{key}`, counted by `GET /ledger`. Each
service has a bearer token of its own, read from `SANDBOX_BUDGET_TOKEN`, `SANDBOX_EXPENSE_TOKEN` and
`SANDBOX_NOTIFY_TOKEN`; `SANDBOX_ADMIN_TOKEN` opens the ledger and the faults (`PUT /faults`, see `sandbox_faults`).
"""

from __future__ import annotations

import argparse
import asyncio
import hmac
import json
import os
import time
from collections.abc import Awaitable, Callable
from email.utils import formatdate
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from examples.expenses.sandbox_answers import BrokenAnswer, again, canonical, first, found, minor_units, problem
from examples.expenses.sandbox_faults import Faults
from examples.expenses.sandbox_ledger import Answer, Ledger

SERVICES = {
    "/budget/reserve": "SANDBOX_BUDGET_TOKEN",
    "/budget/release": "SANDBOX_BUDGET_TOKEN",
    "/expense/reimburse": "SANDBOX_EXPENSE_TOKEN",
    "/employee/notify": "SANDBOX_NOTIFY_TOKEN",
}
ADMIN = "SANDBOX_ADMIN_TOKEN"


class Provider:
    """The provider's behaviour; all of it runs on one event loop, so that each step is atomic between two awaits."""

    def __init__(self, ledger: Ledger, tokens: dict[str, str], clock: Callable[[], float] = time.time) -> None:
        self.ledger = ledger
        self.faults = Faults()
        self._tokens = tokens
        self._clock = clock
        self._in_flight: set[str] = set()

    def app(self) -> Starlette:
        """The web application."""
        effects = [Route(path, self.make_effect, methods=["POST"]) for path in SERVICES]
        return Starlette(
            routes=[
                *effects,
                Route("/effects/{key:path}", self.find_effect),
                Route("/ledger", self._admin(self.show_ledger)),
                Route("/faults", self._admin(self.set_faults), methods=["PUT"]),
            ]
        )

    async def make_effect(self, request: Request) -> Response:
        """Make the effect once for its key, whatever the faults then do to the answer."""
        path, key = request.url.path, request.headers.get("idempotency-key", "")
        raw = (await request.body()).decode("utf-8", "replace")
        if not self._may(request, SERVICES[path]):
            return self._noted(path, key, raw, "unauthorised", problem(401, "the token does not open this service"))
        body = canonical(raw)
        if not key or body is None:
            return self._noted(path, key, raw, "bad", problem(400, "send a JSON object and an Idempotency-Key"))
        if key in self._in_flight:
            return self._noted(path, key, body, "in flight", problem(409, "a call with this key is in progress"))
        self._in_flight.add(key)
        try:
            return await self._handle(path, key, body)
        finally:
            self._in_flight.discard(key)

    async def _handle(self, path: str, key: str, body: str) -> Response:
        faults = self.faults
        if faults.take("rate_limit", path):
            due = faults.retry_after
            header = formatdate(self._clock() + due, usegmt=True) if faults.retry_after_date else f"{due:g}"
            return self._noted(path, key, body, "limited", problem(429, "slow down", {"Retry-After": header}))
        if faults.take("fail_before_effect", path):
            return self._noted(path, key, body, "failed before", problem(500, "nothing was done"))
        if faults.hit(path):
            await asyncio.sleep(faults.delay)
        known = None if faults.forget_keys else self.ledger.answer(key)
        if known is not None and (known.path, known.body) != (path, body):
            return self._noted(path, key, body, "conflict", problem(422, "this idempotency key was used otherwise"))
        if known is not None:
            return self._noted(path, key, body, "replayed", again(known))
        return await self._settle(path, key, body)

    async def _settle(self, path: str, key: str, body: str) -> Response:
        faults = self.faults
        declined = 0 < faults.decline_over < minor_units(body) and faults.hit(path)
        content = (
            {"code": "declined", "detail": "over the limit"} if declined else {"id": f"{path.rpartition('/')[2]}-{key}"}
        )
        answer = Answer(path, body, 402 if declined else 200, json.dumps(content), self._clock())
        self.ledger.settle(key, answer, effect=not declined)
        if faults.hit(path):
            await asyncio.sleep(faults.answer_delay)
        if faults.take("fail_after_effect", path):
            return self._noted(path, key, body, "failed after", problem(500, "something went wrong"))
        if faults.take("drop_after_effect", path):
            return self._noted(path, key, body, "dropped", BrokenAnswer())
        if faults.take("wrong_answer", path):
            return self._noted(path, key, body, "wrong answer", Response("<html>all is well</html>"))
        return self._noted(path, key, body, "declined" if declined else "done", first(answer))

    async def find_effect(self, request: Request) -> Response:
        """Tell what became of a key: the effect, a refusal (`refused`), or 404."""
        key = request.path_params["key"]
        if not any(self._may(request, name) for name in set(SERVICES.values())):
            return problem(401, "the token opens no service")
        answer = self.ledger.answer(key)
        if answer is None or self._clock() - answer.at < self.faults.lookup_lag:
            return problem(404, "no effect under this key")
        if not self._may(request, SERVICES[answer.path]):
            return problem(401, "the token does not open this service")
        return found(answer)

    async def show_ledger(self, _: Request) -> Response:
        """Counts and every effect."""
        return JSONResponse({**self.ledger.counts(), "rows": self.ledger.effects()})

    async def set_faults(self, request: Request) -> Response:
        """Replace all faults by those that the body names; `{}` ends them."""
        try:
            self.faults = Faults.of(await request.json())
        except (ValueError, AttributeError) as error:
            return problem(400, str(error))
        return Response(status_code=204)

    def _admin(self, handler: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
        async def guarded(request: Request) -> Response:
            return await handler(request) if self._may(request, ADMIN) else problem(401, "the token is not the admin's")

        return guarded

    def _may(self, request: Request, name: str) -> bool:
        given = request.headers.get("authorization", "").encode()
        return hmac.compare_digest(given, f"Bearer {self._tokens[name]}".encode())

    def _noted(self, path: str, key: str, body: str, answer: str, response: Response) -> Response:
        self.ledger.note_call(path, key or None, body, answer, self._clock())
        return response


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(prog="python -m examples.expenses.sandbox_provider", description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--ledger", type=Path, required=True, help="SQLite file, made if absent")
    options = parser.parse_args()
    names = {ADMIN, *SERVICES.values()}
    missing = sorted(name for name in names if not os.environ.get(name))
    if missing:
        parser.error(f"set {', '.join(missing)} in the environment: each service has a secret of its own")
    provider = Provider(Ledger(options.ledger), {name: os.environ[name] for name in names})
    uvicorn.run(provider.app(), host="127.0.0.1", port=options.port, log_level="critical", access_log=False)


if __name__ == "__main__":
    main()
