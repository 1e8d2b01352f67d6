"""Chat-app messages from templates. Both operations do the same: any template name is accepted."""

from __future__ import annotations

from msgctl.sandbox import messages
from msgctl.sandbox.decode import Parameters
from msgctl.sandbox.messages import Content, Message, Scope


def send_template(scope: Scope, parameters: Parameters) -> dict[str, object]:
    template, values = parameters.text("template"), parameters.several("body")
    text = ": ".join(filter(None, (template, ", ".join(values))))
    content = Content(messages.CHATAPP, text, text, credits=1, template=template, values=values)
    (message,) = messages.send(scope, [parameters.text("phone")], content)
    return chatapp_record(message)


def chatapp_record(message: Message) -> dict[str, object]:
    """Return the record of a chat-app message. It has no entries, so ``id`` is the message's."""
    return {
        "id": message.id,
        "status": messages.status([message]),
        "phone": message.phone,
        "name": message.content.template or "",
    }
