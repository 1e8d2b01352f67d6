"""An error that msgctl does not expect has its cause, and whether anything was sent."""

from __future__ import annotations

import errno
import json
import traceback

import pytest

from msgctl.errors import BugError, Hint, MsgctlError, UsageError, of_thread, unexpected

USED_UP = [
    MemoryError(),
    OSError(errno.ENOMEM, "x"),
    OSError(errno.EMFILE, "x"),
    OSError(errno.ENFILE, "x"),
    RuntimeError("can't start new thread"),
]
BUGS = [RuntimeError("x"), OSError(errno.ENOENT, "x"), ValueError("start new thread"), KeyError("x")]


@pytest.mark.parametrize("error", USED_UP, ids=repr)
def test_a_resource_that_is_used_up_is_named(error: Exception) -> None:
    before, after = unexpected(error, is_sent=False), unexpected(error, is_sent=True)
    assert before.what == after.what == "msgctl ran out of memory, open files or threads"
    assert (before.exit_code, after.exit_code) == (3, 5)
    assert before.hint == "Raise the limit (see: ulimit -a), or the container's limit, then try again."
    assert after.hint == "Raise the limit (see: ulimit -a), or the container's limit."
    assert (before.consequence, after.consequence) == ("", "it may have been sent")


@pytest.mark.parametrize("error", BUGS, ids=repr)
def test_a_bug_is_named_without_the_text_of_the_exception(error: Exception) -> None:
    before, after = unexpected(error, is_sent=False), unexpected(error, is_sent=True)
    assert before.what == after.what == f"msgctl stopped because of a bug ({type(error).__name__})"
    assert (before.exit_code, after.exit_code, after.hint) == (5, 5, "Please report it.")
    assert (before.consequence, after.consequence) == ("nothing was sent", "it may have been sent")


def test_a_bug_is_where_the_exception_was_raised() -> None:
    with pytest.raises(ValueError, match="Expecting") as caught:
        json.loads("{")
    line = traceback.extract_tb(caught.value.__traceback__)[-1].lineno
    assert f"(JSONDecodeError in decoder.py, line {line})" in unexpected(caught.value, is_sent=False).what
    error = of_thread(caught.value)
    assert isinstance(error, BugError)
    assert error.consequence == "nothing was sent"


def test_an_error_of_a_thread_keeps_no_frames() -> None:
    with pytest.raises(UsageError) as caught:
        raise UsageError("wrong") from ValueError()
    error = of_thread(caught.value)
    assert error is caught.value
    assert (error.__traceback__, error.__cause__, error.__context__) == (None, None, None)


def test_a_message_has_its_consequence_after_its_first_line() -> None:
    error = MsgctlError("Wrong.\nA line\nAnother", consequence="nothing was sent")
    assert error.message == str(error) == "Wrong; nothing was sent\nA line\nAnother"
    assert MsgctlError("Wrong.").message == "Wrong."
    assert error.within("Job 7").message.startswith("Job 7: Wrong; nothing")
    assert error.with_hint("Do this.", "And that.").hint == "Do this.\nAnd that."
    assert (error.reason, error.http_status, error.body) == ("error", None, "")


def test_the_commands_of_a_hint_use_the_profile_of_the_run() -> None:
    hint = (
        MsgctlError("Wrong", Hint("Cancel it: ", "job cancel X", ". Or wait.")).with_hint("See: msgctl job list").hint
    )
    assert isinstance(hint, Hint)
    assert hint == "Cancel it: msgctl job cancel X. Or wait.\nSee: msgctl job list"
    assert hint.shown("my shop") == "Cancel it: msgctl -p 'my shop' job cancel X. Or wait.\nSee: msgctl job list"
    both = Hint.joined("", Hint("Resume: ", "job resume X"), None, Hint("", "balance"), separator=" ")
    assert both.shown("main") == "Resume: msgctl -p main job resume X msgctl -p main balance"
