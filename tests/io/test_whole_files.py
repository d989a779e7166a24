import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rankmill.errors import UsageError
from rankmill.io import signals
from rankmill.io.whole_files import (
    _complete_files,
    _signals_held,
    check_target,
    write_files,
)

TABLE = pa.table({"user": pa.array([3, 1], pa.uint16()), "map@12": [0.5, 0.25]})


@pytest.fixture(autouse=True, params=["without a name", "with a name"])
def temporary(request, monkeypatch):
    """Run each test as on a system that has files without a name, and as on one without them."""
    if request.param == "with a name":
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    elif not hasattr(os, "O_TMPFILE"):
        pytest.skip("needs O_TMPFILE, which Linux has")
    yield request.param
    assert not signals.leftovers


@pytest.fixture
def umask():
    """Set an unusual umask, because the code must not use a fixed mode."""
    before = os.umask(0o027)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_text_and_table(tmp_path):
    write_files([(tmp_path / "a.txt", "naïve\n")])
    write_files([(tmp_path / "b.parquet", TABLE)])
    assert (tmp_path / "a.txt").read_bytes() == "naïve\n".encode()
    assert pq.read_table(tmp_path / "b.parquet").equals(TABLE)
    assert sorted(os.listdir(tmp_path)) == ["a.txt", "b.parquet"]


def test_text_that_utf_8_cannot_hold_is_escaped(tmp_path):
    write_files([(tmp_path / "a", "file \udcff")])
    assert (tmp_path / "a").read_text() == "file \\udcff"


def test_the_target_changes_only_at_the_end(tmp_path, temporary):
    target = tmp_path / "a"
    target.write_text("old")
    with _complete_files([target]) as (file,):
        file.write(b"new")
        file.flush()
        assert len(os.listdir(tmp_path)) == (1 if temporary == "without a name" else 2)
        assert signals.leftovers <= set(map(str, tmp_path.iterdir()))
        assert target.read_text() == "old"
    assert target.read_text() == "new"
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("old", [None, "old"])
def test_an_exception_leaves_everything_as_it_was(tmp_path, error, old):
    target = tmp_path / "a"
    if old is not None:
        target.write_text(old)

    def fail_halfway():
        with _complete_files([target]) as (file,):
            file.write(b"half of")
            raise error

    with pytest.raises(error):
        fail_halfway()
    assert os.listdir(tmp_path) == ([] if old is None else ["a"])
    assert old is None or target.read_text() == old


def test_several_files_are_written_all_or_none(tmp_path):
    first, second = tmp_path / "a", tmp_path / "b"
    second.write_text("old")
    unwritable = pa.table({"span": pa.array([(1, 2, 3)], pa.month_day_nano_interval())})
    with pytest.raises(pa.ArrowNotImplementedError):
        write_files([(first, "new"), (second, unwritable)])
    assert os.listdir(tmp_path) == ["b"]
    assert second.read_text() == "old"
    write_files([(first, "new"), (second, TABLE)])
    assert first.read_text() == "new"
    assert pq.read_table(second).equals(TABLE)


@pytest.mark.usefixtures("umask")
def test_a_new_file_has_the_permissions_of_any_new_file(tmp_path):
    (tmp_path / "usual").touch()
    write_files([(tmp_path / "a", "x")])
    assert mode(tmp_path / "a") == mode(tmp_path / "usual") == 0o640


@pytest.mark.usefixtures("umask")
def test_a_replaced_file_keeps_its_permissions(tmp_path):
    target = tmp_path / "a"
    target.touch()
    target.chmod(0o604)
    write_files([(target, "x")])
    assert mode(target) == 0o604


def test_a_link_is_followed_and_stays(tmp_path):
    (tmp_path / "real").mkdir()
    target, link = tmp_path / "real" / "a", tmp_path / "link"
    link.symlink_to(target)
    for text in ("first", "second"):  # the first time, the target of the link does not exist
        write_files([(link, text)])
        assert link.is_symlink()
        assert target.read_text() == text
    assert os.listdir(tmp_path / "real") == ["a"]


def test_a_relative_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_files([("a", "x")])
    assert (tmp_path / "a").read_text() == "x"


def test_a_pipe_gets_the_content_itself(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    write_files([(pipe, TABLE)])
    reader.join(10)
    assert pq.read_table(pa.BufferReader(got[0])).equals(TABLE)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert os.listdir(tmp_path) == ["pipe"]


def test_a_device_stays_a_device():
    write_files([(os.devnull, "text"), (os.devnull, TABLE)])
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_a_full_device_is_an_error():
    with pytest.raises(OSError, match=r"No space left on device\nwriting /dev/full"):
        write_files([("/dev/full", "text")])


@pytest.mark.parametrize("content", ["text" * 1000, pa.table({"x": range(1000)})])
@pytest.mark.parametrize("size", [0, 100])
def test_a_full_disk_is_an_error_and_leaves_all_as_it_was(tmp_path, content, size):
    resource = pytest.importorskip("resource")
    (tmp_path / "b").write_text("old")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        with pytest.raises(OSError, match=r"File too large\nwriting .*b"):
            write_files([(tmp_path / "a", ""), (tmp_path / "b", content)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert [path.name for path in tmp_path.iterdir()] == ["b"]
    assert (tmp_path / "b").read_text() == "old"


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("", "name of the output file is empty"),
        ("missing/deep/a", "there is no folder .*missing/deep; make it first"),
        ("file/a", "file is a file, not a folder"),
        (".", "it is a folder; give the name of a file"),
        ("x" * 300, "File name too long"),
    ],
)
def test_an_impossible_target_is_found_before_anything_is_written(
    tmp_path, monkeypatch, path, message
):
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("old")
    with pytest.raises(UsageError, match=message):
        check_target(path)
    with pytest.raises(UsageError, match=message):
        write_files([("other", "text"), (path, "text")])
    assert os.listdir(tmp_path) == ["file"]
    assert Path("file").read_text() == "old"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_no_permission(tmp_path):
    (tmp_path / "a").touch(0o400)
    with pytest.raises(UsageError, match="write-protected"):
        check_target(tmp_path / "a")
    (tmp_path / "locked").mkdir(0o500)
    with pytest.raises(UsageError, match="no permission to make files in the folder"):
        check_target(tmp_path / "locked" / "a")


def test_a_folder_that_vanishes_meanwhile_is_an_error(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()

    def remove_it_meanwhile():
        with _complete_files([folder / "a"]):
            for temporary in folder.iterdir():
                temporary.unlink()
            folder.rmdir()

    with pytest.raises(UsageError, match="No such file"):
        remove_it_meanwhile()


def test_a_pipe_gets_nothing_where_a_file_cannot_be_written(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    unwritable = pa.table({"span": pa.array([(1, 2, 3)], pa.month_day_nano_interval())})
    with pytest.raises(pa.ArrowNotImplementedError):  # else it would wait for a reader of the pipe
        write_files([(pipe, "text"), (tmp_path / "a", unwritable)])
    assert os.listdir(tmp_path) == ["pipe"]


def test_no_interrupt_comes_between_two_renames():
    before = signal.getsignal(signal.SIGINT)
    with _signals_held():
        os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_a_request_to_end_waits_for_the_renames():
    came = []
    before = signal.signal(signal.SIGTERM, lambda *_: came.append("after"))
    try:
        with _signals_held():
            os.kill(os.getpid(), signal.SIGTERM)
            came.append("within")
    finally:
        signal.signal(signal.SIGTERM, before)
    assert came == ["within", "after"]


def end_while_writing(folder, temporary, during, number) -> tuple[int, str, dict[str, str]]:
    """Run a process that replaces one file and makes another, and sends itself a signal meanwhile.

    Returns its exit code, its output, and the contents of the folder.
    """
    (folder / "a").write_text("old")
    code = f"""
import os, sys
from pathlib import Path
from rankmill.io import signals
from rankmill.io import whole_files as writing
during, (folder,) = {during!r}, map(Path, sys.argv[1:])
if {temporary == "with a name"}:
    del os.O_TMPFILE
def kill():
    os.kill(os.getpid(), {int(number)})
link = writing._link
def kill_and_link(*arguments):
    kill()
    link(*arguments)
signals.end_on_signals()
if during == "links":
    writing._link = kill_and_link
with writing._complete_files([folder / "a", folder / "b"]) as files:
    for file in files:
        file.write(b"new")
    if during == "writing":
        kill()
if during == "after":
    kill()
"""
    ended = subprocess.run(
        [sys.executable, "-c", code, str(folder)],
        capture_output=True,
        text=True,
        # Below nohup, the tests themselves ignore this signal.
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
    )
    return ended.returncode, ended.stderr, {one.name: one.read_text() for one in folder.iterdir()}


@pytest.mark.parametrize("number", signals.ENDING)
@pytest.mark.parametrize("during", ["writing", "links", "after"])
def test_a_signal_leaves_all_or_nothing(tmp_path, temporary, during, number):
    code, said, contents = end_while_writing(tmp_path, temporary, during, number)
    if during == "writing":
        assert contents == {"a": "old"}
        assert said == f"error: {signals.ENDING[number]}; nothing written\n"
        assert code == 128 + number
    else:  # too late to undo: the process ends as if no signal had come
        assert contents == {"a": "new", "b": "new"}
        assert (code, said) == (0, "")


def test_a_kill_leaves_nothing_where_files_need_no_name(tmp_path, temporary):
    code, _, contents = end_while_writing(tmp_path, temporary, "writing", signal.SIGKILL)
    assert code == -signal.SIGKILL
    assert contents.pop("a") == "old"
    assert len(contents) == (0 if temporary == "without a name" else 2)


def test_what_a_dead_process_left_is_removed(tmp_path):
    names = (".rankmill-12.tmp", ".rankmill-34.tmp", ".rankmill-56.tmp", "rankmill.tmp", ".x.tmp")
    for name in names:
        (tmp_path / name).write_text("half" if "12" in name else "")
    os.utime(tmp_path / names[1], (0, 0))
    write_files([(tmp_path / "a", "x")])
    # An empty file may be one that a living process has just made, and locks in no time.
    assert {path.name for path in tmp_path.iterdir()} == {*names[2:], "a"}


def test_what_a_living_process_writes_stays(tmp_path, monkeypatch):
    replace = os.replace

    def meanwhile(hidden, target):
        monkeypatch.setattr(os, "replace", replace)
        write_files([(tmp_path / "b", "b")])
        replace(hidden, target)

    with _complete_files([tmp_path / "c"]) as (file,):
        file.write(b"c")
        file.flush()
        monkeypatch.setattr(os, "replace", meanwhile)
        write_files([(tmp_path / "a", "a")])
    found = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert found == {"a": "a", "b": "b", "c": "c"}


def test_works_outside_the_main_thread(tmp_path):
    writer = threading.Thread(target=write_files, args=([(tmp_path / "a", "x")],))
    writer.start()
    writer.join(10)
    assert (tmp_path / "a").read_text() == "x"
