"""The job that publishes the outbox: one op, which finds its own work in the store. Running it again is always safe."""

# Dagster reads the annotation of an op's context as a type, so annotations are not postponed in this file.

import dagster as dg

from ops.publishing import publish_events
from policies.redaction import clipped
from policies.run_tags import PARKED, PUBLISHED

MOST_SHOWN = 20
"""Parked events shown in a run; all of them are in the ledger."""

MOST_TEXT = 300


@dg.op(required_resource_keys={"publisher"}, out=dg.Out(dg.Nothing))
def publish(context: dg.OpExecutionContext) -> None:
    """Deliver what is due; fails, after all is recorded, if an event was given up: a person has to know."""
    found = publish_events(context.resources.publisher)
    context.instance.add_run_tags(
        context.run_id, {PUBLISHED: str(found.published), **({PARKED: str(len(found.parked))} if found.parked else {})}
    )
    shown = [clipped(one, MOST_TEXT) for one in found.parked[:MOST_SHOWN]]
    context.add_output_metadata(
        {
            "published": found.published,
            "postponed": found.postponed,
            "parked": len(found.parked),
            **({"receiver_down": clipped(found.outage, MOST_TEXT)} if found.outage else {}),
            **({"given_up": shown} if shown else {}),
        }
    )
    if found.outage:
        context.log.warning("stopped early: %s", clipped(found.outage, MOST_TEXT))
    if found.parked:
        raise dg.Failure(
            description=f"{len(found.parked)} events were given up and will not be published; later events of the same"
            " requests go on. Each is in the ledger, stream `system`, as `outbox.parked`: tell the receiver what it"
            " missed."
            f" {' '.join(shown)}",
            allow_retries=False,
        )


@dg.graph
def publish_outbox() -> None:
    """Bring what requests came to, to whom it may concern."""
    publish()
