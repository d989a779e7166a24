"""What other tests share with those of cli process."""

import subprocess
import sys


def python(code, *arguments) -> subprocess.CompletedProcess:
    """Run code in a new interpreter."""
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)
