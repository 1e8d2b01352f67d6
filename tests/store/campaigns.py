"""Jobs that the tests of the store import, publish and send."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgctl.outcomes.outcome import Outcome
from msgctl.store import jobs, owners, recipients
from msgctl.store.batches import OwnedJob
from msgctl.store.jobs import Job
from msgctl.store.queue import ExclusionRules
from msgctl.store.recipients import NewContent, NewRecipient
from msgctl.store.results import Intent, RequestOutcome
from msgctl.store.store import Store

ACCOUNT = "12345@https://service.example"
SMS = ExclusionRules("sms")
ANA, LUIS, EVA = "573001234567", "573101234567", "573201234567"


def phone(number: int) -> str:
    return str(573_000_000_000 + number)


def imported(store: Store, phones: Sequence[str], *, message: str = "Hola", account: str = ACCOUNT) -> int:
    """Import a job that sends one message; return its number."""
    number = jobs.create(store, account, "main", "sms bulk")
    rows = [NewRecipient(line, each, 1, "[]") for line, each in enumerate(phones, 1)]
    recipients.add(store, number, [NewContent(1, f'{{"sms": "{message}"}}', message.encode(), 1)], rows)
    return number


def published(
    store: Store, phones: Sequence[str], *, name: str | None = None, message: str = "Hola", account: str = ACCOUNT
) -> Job:
    """Import and publish a job."""
    number = imported(store, phones, message=message, account=account)
    return jobs.publish(store, number, state="active", digest=message.encode(), name=name)


def responses(intents: Sequence[Intent], others: Mapping[str, str] | None = None) -> list[RequestOutcome]:
    """Return the outcomes of requests: each phone is accepted for 1 credit, or has its outcome in ``others``."""
    by_phone = others or {}
    return [
        RequestOutcome(
            intent,
            [Outcome(each, by_phone.get(str(each), "accepted"), f"id-{each}", "", 1_000_000) for each in intent.phones],
        )
        for intent in intents
    ]


def intend(sending: OwnedJob, size: int = 100, wanted: int = 1, rules: ExclusionRules = SMS) -> list[Intent]:
    """Store the next intents in one batch."""
    intents: list[Intent] = []
    with sending.batch(rules, wanted):
        while len(intents) < wanted and (intent := sending.intend(size)):
            intents.append(intent)
    return intents


def record(sending: OwnedJob, intents: Sequence[Intent], others: Mapping[str, str] | None = None) -> None:
    with sending.batch(SMS):
        sending.record(responses(intents, others))


def sent(
    store: Store, number: int, others: Mapping[str, str] | None = None, *, rules: ExclusionRules = SMS, size: int = 100
) -> list[str]:
    """Send a job to its end, and return the phones that its requests contained."""
    sending = owners.take(store, number)
    phones: list[str] = []
    while intents := intend(sending, size, 4, rules):
        phones += [str(each) for intent in intents for each in intent.phones]
        record(sending, intents, others)
    sending.finish("done")
    return phones
