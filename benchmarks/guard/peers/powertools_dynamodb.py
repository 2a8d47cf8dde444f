"""Powertools for AWS Lambda: idempotent functions over DynamoDB, here moto's on the loopback."""

from __future__ import annotations

import contextlib

import boto3
from aws_lambda_powertools.utilities.idempotency import (
    DynamoDBPersistenceLayer,
    IdempotencyConfig,
    idempotent_function,
)

from benchmarks.guard.work import RUN, TOOL, Guarded, Order, Place, order

TABLE = "idempotency"


class _Context:
    """Lambda's context: without one, what a crash leaves in progress blocks until it expires."""

    def __init__(self, remaining_ms: int) -> None:
        self._remaining_ms = remaining_ms

    def get_remaining_time_in_millis(self) -> int:
        """How long the invocation may still take."""
        return self._remaining_ms


def build(place: Place) -> Guarded:
    """Key, payload validation, and an in-progress expiry, as its documentation advises."""
    client = boto3.client(
        "dynamodb",
        endpoint_url=place.service,
        region_name="us-east-1",
        aws_access_key_id="none",
        aws_secret_access_key="none",  # noqa: S106 - moto asks for none
    )
    with contextlib.suppress(client.exceptions.ResourceInUseException):
        client.create_table(
            TableName=TABLE,
            KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
    config = IdempotencyConfig(
        event_key_jmespath="[run, tool, order.vendor_id, order.po_ref]",
        payload_validation_jmespath="order",
        raise_on_no_idempotency_key=True,
        hash_function="sha256",
    )
    config.register_lambda_context(_Context(int(place.lease_s * 1000)))

    @idempotent_function(
        data_keyword_argument="event",
        config=config,
        persistence_store=DynamoDBPersistenceLayer(table_name=TABLE, boto3_client=client),
    )
    def create(event: Order) -> Order:
        return place.act(event["order"]["po_ref"])

    def call(ref: str) -> object:
        return create(event={"run": RUN, "tool": TOOL, "order": order(ref)})

    return Guarded(call=call)
