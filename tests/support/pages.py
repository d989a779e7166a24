"""What other tests share with those of docs."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)


def shell(script: str, **variables: str) -> str:
    """What a shell prints that runs a script, or what is wrong with it if it fails."""
    rankmill = f'rankmill() {{ {shlex.quote(sys.executable)} -m rankmill "$@"; }}; set -e\n'
    given = [shutil.which("bash") or "sh", "-c", rankmill + script]
    environment = {**os.environ, **variables}
    ran = subprocess.run(given, capture_output=True, text=True, check=False, env=environment)
    return ran.stderr if ran.returncode else ran.stdout
