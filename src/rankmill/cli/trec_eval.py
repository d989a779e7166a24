"""`rankmill trec_eval`: what trec_eval prints, by its own flags."""

import getopt
import re
import sys

import click

from rankmill.cli.command import table_command
from rankmill.errors import InputError, UsageError
from rankmill.package import GONE

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


# Where errors go on to name options that trec_eval does not have.
_OPTIONS_NAMED = (
    r"; if not, name|, but repeated_|: name another format|: if it is a run of MS"
    r"|: name it, such as"
)
_EXAMPLES = """
rankmill trec_eval qrels.txt run.txt
rankmill trec_eval --as 10 qrels.txt run.txt
"""


_HELP = """\b
Print what trec_eval 9.0.8 prints about RUN under QRELS, byte for byte. FLAGS:
-m MEASURE    such as official (the default), all_trec, set or P.5,10
-q            print each query too
-n            omit the summary
-c            average over all queries of QRELS
-l LEVEL      the lowest relevant level
-M NUMBER     how many documents count per query
-J            count judged documents only
-N NUMBER     how many documents the collection has
-Z FILE       the means for z-scores
-D 0.QUERY    the only query

Version 10 is 10.0-rc3.
"""


@table_command(
    "trec_eval",
    [click.Argument(["arguments"], nargs=-1, type=click.UNPROCESSED, metavar="[FLAGS] QRELS RUN")],
    context_settings={"ignore_unknown_options": True},
    help=_HELP,
    examples=_EXAMPLES,
)
def command(arguments: tuple[str, ...], version: str) -> None:
    """Print what trec_eval prints, by its own flags."""
    try:
        flags, files = getopt.gnu_getopt(list(arguments), _SHORT, [*_LONG])
    except getopt.GetoptError as error:
        known = ", ".join(sorted({*_LONG.values()}))
        raise UsageError(
            f"trec_eval: {error}: 'rankmill trec_eval --help' explains {known}"
        ) from None
    if len(files) != 2:
        raise UsageError(
            f"trec_eval takes two files, QRELS and RUN; found {len(files)}: type, for example, "
            "rankmill trec_eval qrels.txt run.txt"
        )
    long = {f"--{name.rstrip('=')}": flag for name, flag in _LONG.items()}
    given = [(long.get(flag, flag), value) for flag, value in flags]
    names, last = {flag for flag, _ in given}, dict(given)
    from rankmill.adapters.trec.trec_eval import Request, printed

    for flag, known in (("-R", "qrels"), ("-T", "trec_results")):
        if (found := last.get(flag, known)) != known:
            raise UsageError(GONE.get(found, f"{flag} is {found!r}; expected {known}"))
    debug, _, query = last.get("-D", "0").partition(".")
    if _integer("-D", debug):
        raise UsageError(f"-D {debug} shows how trec_eval works inside: type -D 0.QUERY")
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
    try:
        text = printed(files[0], files[1], asked)
    except InputError as error:  # trec_eval has none of the options that such errors go on to name
        raise InputError(re.split(_OPTIONS_NAMED, str(error))[0]) from None
    sys.stdout.buffer.write(text.encode(errors="surrogateescape"))
    sys.stdout.flush()


def _integer(flag: str, text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise UsageError(f"{flag} is {text!r}; expected an integer from 0, of 18 digits at most")
    return int(text)
