"""The handler of each operation: it takes the scope and the checked parameters and returns the record.

A handler raises `protocol.Refusal` to refuse the request; its transaction is then rolled back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgctl import operations
from msgctl.sandbox.decode import Parameters
from msgctl.sandbox.handlers import chatapp, messaging, urls, verification
from msgctl.sandbox.messages import Scope

Handler = Callable[[Scope, Parameters], dict[str, object]]

HANDLERS: Mapping[str, Handler] = {
    operations.BALANCE.name: messaging.balance,
    operations.BLOCK_PHONE.name: messaging.block_phone,
    operations.SEND_SMS.name: messaging.send_sms,
    operations.SEND_CALL.name: messaging.send_call,
    operations.MESSAGES_STATE.name: messaging.messages_state,
    operations.SMS_2FA.name: verification.send_sms,
    operations.CALL_2FA.name: verification.send_call,
    operations.CHATAPP_2FA.name: verification.send_chatapp,
    operations.VERIFY_2FA.name: verification.verify,
    operations.URL_SHORT.name: urls.shorten,
    operations.URL_STATISTIC.name: urls.statistic,
    operations.CHATAPP_SEND.name: chatapp.send_template,
    operations.CHATAPP_ORDER.name: chatapp.send_template,
}
"""The handlers by the name of their operation."""
