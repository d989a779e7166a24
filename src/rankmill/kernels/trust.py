"""Who may write to the folder of saved kernels: the code in its files is run."""

import functools
import os
import stat
from contextlib import suppress


def check_folder(path: str, named: str) -> None:
    """Raise RuntimeError if another user than this one and root can put a file into a folder.

    Its path has no symbolic links, so that what is checked is what is opened later. `named` is the
    folder that NUMBA_CACHE_DIR names, of which it is a subfolder; "" if it is not set.
    """
    kept = {path, os.path.realpath(named) if named else path}
    while True:
        found = os.stat(path)
        # In a folder with the sticky bit, such as /tmp, nobody can replace what others own.
        shared = path not in kept and bool(found.st_mode & stat.S_ISVTX)
        reason = why_unsafe(path, found, shared=shared)
        if reason is not None:
            raise RuntimeError(f"{path} {reason}, whose code would run as yours")
        above = os.path.dirname(path)
        if above == path:
            return
        path = above


def check_files(folder: str) -> None:
    """Raise RuntimeError if others can write to a folder of NUMBA_CACHE_DIR, or a file in it.

    Also if something in it is not a plain file: opening a pipe would wait for its writer.
    """
    check_folder(os.path.realpath(folder), os.environ.get("NUMBA_CACHE_DIR", ""))
    paths = (os.path.join(folder, name) for name in os.listdir(folder))
    for path in filter(os.path.exists, paths):  # another process may have replaced one
        if not os.path.isfile(path):
            raise RuntimeError(f"{path} is not a plain file")
        reason = why_unsafe(path)
        if reason is not None:
            raise RuntimeError(f"{path} {reason}, whose code would run as yours")


def why_unsafe(
    file: int | str, found: os.stat_result | None = None, *, shared: bool = False
) -> str | None:
    """Return why another user could have written an open file or a path, None if none could.

    If it is `shared`, it does not matter who may write to it, only whom it belongs to.
    """
    if os.name == "nt":  # its permissions say nothing there
        return None
    found = os.stat(file) if found is None else found
    if found.st_uid not in (0, os.geteuid()):
        return f"belongs to another user (uid {found.st_uid})"
    if shared:
        return None
    if found.st_mode & stat.S_IWOTH:
        return "can be written by everybody"
    if found.st_mode & stat.S_IWGRP and not (_only_own(found.st_gid) and not _has_list(file)):
        return f"can be written by other users (gid {found.st_gid})"
    return None


@functools.cache
def _only_own(group: int) -> bool:
    """Return whether nobody but this user and root is in a group."""
    import grp
    import pwd

    try:
        user, of_group = pwd.getpwuid(os.geteuid()).pw_name, grp.getgrgid(group)
    except KeyError:
        return False
    users = pwd.getpwall()
    members = {*of_group.gr_mem, *(one.pw_name for one in users if one.pw_gid == group)}
    # A list of users that lacks this one, as that of a directory service may, lacks others too.
    complete = user in {one.pw_name for one in users} or of_group.gr_name == user
    return complete and members <= {user, "root"}


def _has_list(file: int | str) -> bool:
    """Return whether an access control list, of which the mode is a mask, may name other users."""
    with suppress(AttributeError, OSError):
        return bool(os.getxattr(file, "system.posix_acl_access"))
    return False
