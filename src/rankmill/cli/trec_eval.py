"""`rankmill trec_eval`: what trec_eval prints, by its own flags."""

from __future__ import annotations

import getopt
import sys

import click

from rankmill.errors import UsageError

_SHORT = "qm:cl:nD:JN:M:R:T:oZ:"
_LONG = {
    "query_eval_wanted": "-q",
    "measure=": "-m",
    "complete_rel_info_wanted": "-c",
    "level_for_rel=": "-l",
    "nosummary": "-n",
    "Debug_level=": "-D",
    "Judged_docs_only": "-J",
    "Number_docs_in_coll=": "-N",
    "Max_retrieved_per_topic=": "-M",
    "Rel_info_format=": "-R",
    "Results_format=": "-T",
    "Zscore=": "-Z",
}


@click.command(
    "trec_eval",
    context_settings={"ignore_unknown_options": True, "help_option_names": ["-h", "--help"]},
    help="""Print what trec_eval 9.0.8 prints about RUN under QRELS, byte for byte.

    \b
    -q             lines of each query too        -c      mean over all queries of QRELS
    -m MEASURE     official, all_trec, set, or one such as P.5,10; may be repeated
    -l N           least level that is relevant   -M N    only the first N of each query
    -J             only judged documents          -N N    documents in the collection
    -n             no lines of all queries        -Z F    z-scores, with means of file F
    -D 0.QUERY     only this query                --as 10 as trec_eval 10.0-rc3 prints it
    """,
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[FLAGS] QRELS RUN")
def command(arguments: tuple[str, ...]) -> None:
    """Read the flags as trec_eval does, and print."""
    try:
        flags, files = getopt.gnu_getopt(list(arguments), _SHORT, [*_LONG, "as="])
    except getopt.GetoptError as error:
        raise UsageError(f"trec_eval: {error}: 'rankmill trec_eval --help' has the flags") from None
    if len(files) != 2:
        raise UsageError(f"trec_eval takes two files, QRELS and RUN; found {len(files)}")
    long = {name.rstrip("="): flag for name, flag in _LONG.items()}
    given = [(long.get(flag.lstrip("-"), flag), value) for flag, value in flags]
    names, last = {flag for flag, _ in given}, dict(given)
    for flag, usual in (("-R", "qrels"), ("-T", "trec_results")):
        if last.get(flag, usual) != usual:
            raise UsageError(f"{flag} {last[flag]} is a format that is not read here, only {usual}")
    debug, _, query = last.get("-D", "0").partition(".")
    if _integer("-D", debug):
        raise UsageError(f"-D {debug} shows how trec_eval works inside: type -D 0.QUERY")
    version = last.get("--as", "9")
    if version not in ("9", "10"):
        raise UsageError(f"--as is {version!r}; expected 9 or 10")
    from rankmill.adapters.trec.trec_eval import Request, printed

    depth = _integer("-M", last["-M"]) if "-M" in last else None
    asked = Request(
        version=int(version),
        measures=tuple(value for flag, value in given if flag == "-m") or ("official",),
        each="-q" in names,
        complete="-c" in names,
        level=_integer("-l", last.get("-l", "1")),
        depth=depth,
        judged_only="-J" in names,
        summary="-n" not in names,
        documents=_integer("-N", last.get("-N", "0")),
        query=query,
        scores=last.get("-Z", ""),
    )
    text = printed(files[0], files[1], asked)
    sys.stdout.buffer.write(text.encode(errors="surrogateescape"))
    sys.stdout.flush()


def _integer(flag: str, text: str) -> int:
    if not text.isdigit():
        raise UsageError(f"{flag} is {text!r}; expected an integer from 0")
    return int(text)
