"""How much of msgctl one send goes through. The numbers only go down: 100 functions in 20 modules are the aim."""

from __future__ import annotations

import json
import subprocess
import sys

COUNT = """
import json, sys
called = set()

def note(frame, event, argument):
    code = frame.f_code
    if event == "call" and "/msgctl/" in code.co_filename and code.co_flags & 1 and code.co_name[0] != "<":
        called.add((code.co_filename.rpartition("/msgctl/")[2], code.co_qualname))

sys.argv = ["msgctl", "-q", "-p", "sandbox", "sms", "send", "573001234567", "-m", "Hello", "--json"]
from msgctl.__main__ import main
sys.setprofile(note)
code = main()
sys.setprofile(None)
json.dump([code, sorted(called)], sys.stderr)
"""


def test_a_send_goes_through_few_functions() -> None:
    """One SMS to the sandbox, the sandbox counted too."""
    done = subprocess.run([sys.executable, "-c", COUNT], capture_output=True, text=True, check=True, timeout=60)
    code, called = json.loads(done.stderr)
    assert code == 0
    assert len(called) <= 138
    assert len({module for module, _ in called}) <= 24
