"""rankmill.toml: a file of options, for Python and for commands, which take them from click."""

import inspect
import os
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import field
from typing import Any

import click

from rankmill.config.document import (
    INPUT,
    SEMANTICS,
    SYSTEMS,
    Document,
    Place,
    check_keys,
    joined,
    key_text,
    parse_date,
    read_document,
)
from rankmill.config.face import face_of, is_choice, options_taken, source_of, system_names
from rankmill.config.option import Option
from rankmill.config.options import OPTIONS, keys
from rankmill.errors import RankmillError, UsageError
from rankmill.io.stores.urls import is_url
from rankmill.package import GONE
from rankmill.records import record
from rankmill.semantics.choices import CHOICES

# ------------------------------------------------------------------ options as click has them

MOST_DIGITS = 30  # the most digits in a size, which is far more than any memory needs
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_UNITS |= {f"{unit}IB": size for unit, size in _UNITS.items() if unit}
_UNITS |= {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


class KnownChoice(click.Choice[str]):
    """One of some texts; of one that is gone, it says what to use instead."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the text as the option writes it."""
        gone = GONE.get(f"{param.name} {value}") if param else None
        if gone:
            self.fail(gone, param, ctx)
        return super().convert(value, param, ctx)


class ChoiceOrPairs(KnownChoice):
    """One of some texts, or pairs such as "1=3,2=7", which are checked later."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the text as it is if it holds pairs."""
        return str(value) if "=" in str(value) else super().convert(value, param, ctx)


def click_option(one: Option, **more: Any) -> click.Option:
    """Return a row of the table as click has options; `more` is of click."""
    more |= _KINDS.get(one.kind, {})
    if one.choices:
        more |= {"type": (ChoiceOrPairs if one.pairs else KnownChoice)(one.choices, False)}
    elif one.kind == "integer":
        more |= {"type": click.IntRange(one.least, one.most)}
    elif one.kind == "number":
        bounded = one.least is not None or one.most is not None
        more |= {"type": click.FloatRange(one.least, one.most) if bounded else float}
    if one.kind != "flag":
        more |= {"metavar": one.metavar}
    if one.bare is not None:
        more |= {"flag_value": one.bare, "is_flag": one.kind == "flag"}
    if one.default is not None:
        more |= {"default": one.default, "show_default": True}
    if one.required:
        more |= {"required": True}
    return click.Option([*one.flags, one.name], help=one.help, **more)


def parse_size(context: click.Context, parameter: click.Parameter, text: str) -> int:
    """Return a size as a number of bytes: 500MB is 500,000,000; 2GiB and 2G are 2 * 2**30."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?) *([A-Za-z]*)", text.strip())
    unit = _UNITS.get(found[2].upper()) if found else None
    size = 0
    if found and unit and len(found[1]) <= MOST_DIGITS:
        size = int(found[1]) * unit if found[1].isdecimal() else int(float(found[1]) * unit)
    if size < 1:
        shown = text if len(text) <= MOST_DIGITS else f"{text[:MOST_DIGITS]}..."
        raise click.BadParameter(
            f"{shown!r} is not a size in bytes; expected one such as 500MB, 2GB or 1GiB"
        )
    return size


def _source(_: click.Context, one: click.Parameter, text: str | None) -> str | list[str] | None:
    return text if text is None else source_of(text, f"--{one.name}")


_KINDS: dict[str, dict[str, Any]] = {
    "flag": {"is_flag": True},
    "texts": {"multiple": True},
    "pairs": {"multiple": True},
    "input": {"callback": _source},
    "size": {"callback": parse_size},
}

# ------------------------------------------------------------------ the file


@record(frozen=True)
class Config:
    """The contents of a file, checked and filled in; paths are relative to the working folder.

    Attributes
    ----------
    path : str
        The file.
    labels : str or list of str
    systems : dict of str to str or list of str
        Name -> predictions.
    baseline : str or None
        The name of a system, a path, or "last" or "median:7" of a history.
    options : dict
        All else, as the functions of rankmill take it: "metrics", "semantics", "query", "by" and
        so on.
    """

    path: str
    labels: str | list[str]
    systems: dict[str, str | list[str]]
    baseline: str | None
    options: dict[str, Any]
    defaults: dict[str, Any] = field(repr=False)
    document: Document = field(repr=False)

    def arguments(self, function: Callable[..., Any]) -> dict[str, Any]:
        """Return the arguments in the file for a function of rankmill.

        Names of files that a command writes are left out.
        """
        wanted, taken = inspect.signature(function).parameters, options_taken(function)
        if "semantics" in wanted:
            self.check_taken(function.__name__, taken)
        given: dict[str, Any] = {"runs": self.systems}
        if "predictions" in wanted:
            given |= self.one(function.__name__, "baseline" in wanted)
        elif "baseline" in wanted:
            given |= self.several(function.__name__)
        given |= {
            name: one
            for name, one in self.options.items()
            if name not in keys() or keys()[name].parameter
        }
        runs = given.pop("predictions", None) or given["runs"]
        told = {name: one for name, one in given.items() if name in taken and name != "runs"}
        found = face_of(function, self.labels, runs, told)
        return {name: found[name] for name in wanted if found.get(name) is not None}

    def check_taken(self, taker: str, wanted: Collection[str]) -> None:
        """Raise UsageError if a taker of these options would count otherwise than the file says."""
        command = re.split("[. ]", taker)[-1]
        for name, one in keys().items():
            # Errors of clusters, and adjusted ones, are for what has all queries at once.
            whole = one in OPTIONS["Comparison"] and command in one.on.split()
            if (one.counts or whole) and self.options.get(name) and name not in wanted:
                self.document.fail(one.place, f"{taker} takes no {name}; it would count otherwise")

    def with_keys(self, message: str, typed: Collection[str] = ()) -> str:
        """Return a message with the keys of the options that it names, but of those typed.

        Examples
        --------
        >>> from rankmill.config import Config
        >>> from rankmill.config.document import Document
        >>> config = Config("x.toml", "", {}, None, {"margin": -1}, {}, Document("x.toml", {}))
        >>> config.with_keys("margin is -1")
        'margin is -1 (in x.toml: margin)'
        >>> config.with_keys("leave out --rank, or use --semantics order=best")
        'leave out --rank, or use --semantics order=best (in x.toml: columns.rank, semantics.order)'
        """
        known = {flag: one.place for one in keys().values() for flag in one.flags}
        known |= {name: one.place for name, one in keys().items() if name in self.options}
        known |= {"--baseline": ("baseline",), "--preset": (SEMANTICS, "preset")}
        known |= {f"--semantics {name}": (SEMANTICS, name) for name in CHOICES}
        told = re.sub("'rankmill [^']*'", "", message)  # an example of another command
        named = re.findall(r"\A\w+|(?<![\w-])--(?:semantics \w+|[a-z-]+)", told)
        found = (known[one] for one in named if one in known)
        texts = dict.fromkeys(key_text(one) for one in found if one[-1] not in typed)
        return f"{message} (in {self.path}: {', '.join(texts)})" if texts else message

    def one(self, taker: str, apart: bool, baseline: str | None = None) -> dict[str, Any]:
        """Return the one system as `predictions`; with `apart`, the `baseline` apart from it."""
        base = baseline or self.baseline
        # The baseline of the file is no candidate, even if another takes its place.
        baselines = (base, self.baseline) if apart else ()
        left = [name for name in self.systems if name not in baselines]
        if len(left) != 1:
            place = (SYSTEMS,) if SYSTEMS in self.document.values else ("predictions",)
            beside = f" beside the baseline {base!r}" if apart and base is not None else ""
            self.document.fail(
                place, f"{taker} takes one system{beside}, not {len(left)}: {', '.join(left)}"
            )
        found = {"predictions": self.systems[left[0]]}
        return found | ({"baseline": self.systems.get(base or "", base)} if apart else {})

    def several(self, taker: str) -> dict[str, Any]:
        """Return the systems as `runs`, and the name of the `baseline` among them."""
        if self.baseline is None or self.baseline in self.systems:
            return {"runs": self.systems, "baseline": self.baseline}
        texts = [joined(one) for one in self.systems.values()]
        if self.baseline in texts:
            return {"runs": self.systems, "baseline": [*self.systems][texts.index(self.baseline)]}
        if is_choice(self.baseline):
            reason = f"{taker} needs predictions as a baseline, not {self.baseline!r}"
            todo = "expected the name of a system, or 'rankmill gate FILE.toml --report page.html'"
            self.document.fail(("baseline",), f"{reason}; {todo}, which reads the history")
        name = system_names([self.baseline, *texts])[0]
        name = f"{name} (baseline)" if name in self.systems else name
        return {"runs": {name: self.baseline, **self.systems}, "baseline": name}


def read_config(
    path: str | os.PathLike[str],
    *,
    date: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> Config:
    """Read and check a rankmill.toml, the file that drives the commands.

    ``rankmill docs config`` lists its keys.

    Parameters
    ----------
    path
        The file. Paths in it are relative to its folder.
    date : str, optional
        The value of ``{date}``, such as "2024-05-01" or "yesterday"; by default today in UTC.
    environment : mapping, optional
        The values of ``${NAME}``; by default the variables of the process.

    Returns
    -------
    Config

    Raises
    ------
    UsageError
        If the file cannot be read or a value in it is wrong; the message names its key.

    Examples
    --------
    >>> from rankmill.config import read_config
    >>> import os, tempfile
    >>> import rankmill
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = os.path.join(folder.name, "rankmill.toml")
    >>> with open(path, "w") as file:
    ...     _ = file.write('''
    ... labels = "s3://shop/labels.parquet"
    ... predictions = "s3://shop/{date:%Y%m%d}/run.parquet"
    ... metrics = ["map@12", "gap"]
    ... [semantics]
    ... preset = "trec_eval"
    ... ''')
    >>> config = read_config(path, date="2024-05-01")
    >>> config.systems
    {'run': 's3://shop/20240501/run.parquet'}
    >>> config.options
    {'metrics': ('map@12', 'gap'), 'semantics': {'preset': 'trec_eval'}}
    >>> list(config.arguments(rankmill.evaluate))  # rankmill.evaluate(**...) then scores the file
    ['labels', 'predictions', 'metrics', 'semantics']
    >>> folder.cleanup()
    """
    filled = os.environ if environment is None else environment
    document = read_document(path, parse_date(date), filled)
    folder = os.path.dirname(document.path)
    found = check_keys(document)
    if ("labels",) not in found:
        _missing(document, "labels", "the path of the labels")
    labels = _from_here(found.pop(("labels",)), INPUT, folder)
    systems = _systems(document, found, folder)
    baseline = found.pop(("baseline",), None)
    if baseline is not None:
        baseline = joined(baseline)
        if baseline not in systems and not is_choice(baseline):
            baseline = _from_here(baseline, INPUT, folder)
    if ("define",) in found and os.path.realpath(folder) != os.path.realpath("."):
        document.fail(
            ("define",),
            "it runs code, which only a file in the working folder may ask for; expected --define "
            "on the command line, or a command that runs in its folder",
        )
    semantics = {str(at[-1]): found.pop(at) for at in [*found] if at[0] == SEMANTICS}
    values = {}
    for name, value in ((str(place[-1]), one) for place, one in found.items()):
        values[name] = _from_here(value, keys()[name], folder)
        if keys()[name].kind == "input":
            values[name] = joined(values[name])
    options = _converted(document, values) | ({"semantics": semantics} if semantics else {})
    if "preset" in semantics:
        values["preset"] = semantics["preset"]
    fields = [f"{name}={one}" for name, one in semantics.items() if name != "preset"]
    values |= {"fields": fields} if fields else {}
    return Config(document.path, labels, systems, baseline, options, values, document)


def texts_of(path: str, date: str | None) -> dict[str, Any]:
    """Return the texts and lists of texts in a file of options, as `Config` has them; else none.

    The file may be wrong. Raises UsageError, TypeError or ValueError if it cannot be read.
    """
    if not path.lower().endswith(".toml"):
        return {}
    values = read_document(path, parse_date(date), os.environ).values
    values |= {f"systems.{name}": one for name, one in dict(values.get("systems", {})).items()}
    return {
        name: _from_here(one, keys().get(name, INPUT), os.path.dirname(path))
        for name, one in values.items()
        if isinstance(one, str) or (isinstance(one, list) and all(isinstance(t, str) for t in one))
    }


def _missing(document: Document, name: str, expected: str) -> None:
    raise UsageError(f"{document.path}: the key {name} is missing; expected {expected}")


def _systems(
    document: Document, found: dict[Place, Any], folder: str
) -> dict[str, str | list[str]]:
    """Return the predictions of each system, which are no longer among what is found."""
    one = found.pop(("predictions",), None)
    places = [place for place in found if place[0] == SYSTEMS]
    if one is None and not places:
        _missing(document, "predictions", "the path of the predictions, or a table [systems]")
    if one is None:
        return {str(place[-1]): _from_here(found.pop(place), INPUT, folder) for place in places}
    one = _from_here(one, INPUT, folder)
    return {system_names([joined(one)])[0]: one}


def _from_here(value: Any, key: Option, folder: str) -> Any:
    """Return a value with its paths, which a file has as seen from its folder, as seen from here.

    An input is one path, or several between commas; of metrics, those after an @ are paths.
    """
    if isinstance(value, list):
        return [_from_here(one, key, folder) for one in value]
    if key.name == "metrics":
        return re.sub(r"(?:(?<=,)|^)\s*@([^,]+)", lambda at: f"@{_path(at[1], folder)}", value)
    if key.kind == "input":
        whole = os.path.exists(os.path.join(folder, value))
        return ",".join(_path(one, folder) for one in ([value] if whole else value.split(",")))
    if key.path == "no":
        return value
    from rankmill.sources.files.formats import is_path

    return _path(value, folder) if key.path == "yes" or is_path(value) else value


def _path(text: str, folder: str) -> str:
    stays = text in ("", "-") or text.lower().startswith("file://") or is_url(text)
    return text if stays else os.path.join(folder, text)


def _converted(document: Document, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options as the commands hand them to the functions."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        option = click_option(keys()[name])
        with click.Context(click.Command("file")) as context:
            try:
                found[name] = option.type_cast_value(context, value)
                if option.callback is not None and option.expose_value:
                    found[name] = option.callback(context, option, found[name])
            except click.BadParameter as error:
                document.fail(keys()[name].place, error.message)
            except RankmillError as error:
                document.fail(keys()[name].place, str(error))
    return found
