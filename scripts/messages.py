"""Print every message of the package as a table, to be read from top to bottom.

    python scripts/messages.py [WORDS]

Each row is a place that raises: the file and line, the class, and the text, whose {placeholders}
stand as in the source. WORDS leave only the rows that have all of them, in any case.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src" / "rankmill"


def text_of(node: ast.expr) -> str:
    """Return a text as it is written, or in braces the expression that makes it."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(one) for one in node.values)
    if isinstance(node, ast.FormattedValue):
        return f"{{{ast.unparse(node.value)}}}"
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return text_of(node.left) + text_of(node.right)
    return f"{{{ast.unparse(node)}}}"


def messages(path: Path) -> Iterator[tuple[str, str, str]]:
    """Yield the place, the class and the text of everything that a file raises with a text."""
    tree = ast.parse(path.read_text("utf-8"))
    raised = [node.exc for node in ast.walk(tree) if isinstance(node, ast.Raise)]
    for one in sorted(filter(None, raised), key=lambda node: node.lineno):
        if isinstance(one, ast.Call) and one.args:
            place = f"{path.relative_to(SOURCE)}:{one.lineno}"
            yield place, ast.unparse(one.func), " | ".join(map(text_of, one.args))


def main() -> None:
    """Print the table."""
    wanted = [word.lower() for word in sys.argv[1:]]
    rows = [row for path in sorted(SOURCE.rglob("*.py")) for row in messages(path)]
    rows = [row for row in rows if all(word in " ".join(row).lower() for word in wanted)]
    for place, kind, text in rows:
        print(f"{place}  {kind}\n    {text}")
    print(f"{len(rows)} messages")


if __name__ == "__main__":
    main()
