"""Chat-app messages from templates. Both operations are alike: the sandbox has every template."""

from __future__ import annotations

from msgctl.sandbox import delivery, dispatch
from msgctl.sandbox.dispatch import Content, Context, Message
from msgctl.sandbox.parameters import Parameters


def send(context: Context, parameters: Parameters) -> dict[str, object]:
    template = parameters.text("template")
    text = ": ".join(filter(None, (template, ", ".join(parameters.several("body")))))
    content = Content(delivery.CHATAPP, text, text, credits=1, template=template)
    (message,) = dispatch.send(context, [parameters.text("phone")], content)
    return record(message)


def record(message: Message) -> dict[str, object]:
    """The record of a chat-app message; its ``id`` is the message's, since it has no entries."""
    return {
        "id": message.id,
        "status": dispatch.status([message]),
        "phone": message.phone,
        "name": message.content.template or "",
    }
