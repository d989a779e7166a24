"""Print every error message of the package as a table, to be read from top to bottom.

    python scripts/messages.py [WORDS]

Each row is a place that raises or makes an error: the file and line, the class or the function that
words it, and the text, whose {placeholders} stand as in the source. WORDS leave only the rows that
have all of them, in any case.
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
    """Yield the place, the class and the text of each error with a text that a file makes."""
    nodes = [*ast.walk(ast.parse(path.read_text("utf-8")))]
    raised = {id(node.exc) for node in nodes if isinstance(node, ast.Raise)}
    calls = [node for node in nodes if isinstance(node, ast.Call) and node.args]
    for one in sorted(calls, key=lambda node: node.lineno):
        kind = ast.unparse(one.func)
        if id(one) in raised or kind.endswith("Error"):
            yield (
                f"{path.relative_to(SOURCE)}:{one.lineno}",
                kind,
                " | ".join(map(text_of, one.args)),
            )


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
