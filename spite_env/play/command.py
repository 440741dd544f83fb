"""What ``spite-env play`` does: a table, its records' file, and a terminal or a page to play at."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from spite_env.play import terminal
from spite_env.play.session import Session, match_rules
from spite_env.play.tables import Tables
from spite_env.policies import make_policy, policy_names
from spite_env.record import record_writer
from spite_env.rules import Rules, checked_integer

#: The port of the page.
PORT = 8000


def play(
    rules: Rules,
    *,
    against: str | None = None,
    match: bool = False,
    seed: int | None = None,
    games: int | None = None,
    seat: int = 0,
    records: str | None = None,
    hint: str | None = None,
    web: bool = False,
    port: int | None = None,
) -> int:
    """Let a person play; the arguments are those of the command line.

    Opponent and hints are ``expert`` by default, or ``greedy`` where there is none.

    Returns:
        The exit status: 0, or 130 after an interrupt.

    Raises:
        ValueError: an unknown policy, or arguments that don't fit together or are out of range.
        ImportError: a page needs a library that is not installed; the message says how to install it.
        OSError: the file can't be written, or the port is in use.
    """
    if games is not None:
        checked_integer("--games", games, 1)
    if port is not None:
        checked_integer("--port", port, 0, 65_535)
    if web and games is not None:
        raise ValueError("--games: only in the terminal; a page goes on until you stop it")
    if port is not None and not web:
        raise ValueError("--port: only with --web")
    strong = "expert" if "expert" in policy_names() else "greedy"
    against, hint = against or strong, hint or strong
    for policy in (against, hint):
        make_policy(policy)  # an unknown one is refused before anything is opened
    if match:
        rules = match_rules(rules)
    opened = record_writer(records, append=True) if records is not None else nullcontext()
    with opened as write, _interruptible():
        try:
            if web:
                from spite_env.play.web import serve

                serve(
                    Tables(against, rules, seat=seat, seed=seed, write=write, hint=hint), PORT if port is None else port
                )
            else:
                terminal.run(Session(against, rules, seat=seat, seed=seed, write=write), hint, games)
        except KeyboardInterrupt:
            return 130
    return 0


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let a request to terminate, or the end of the terminal, do what Ctrl-C does: a record has to be finished."""
    names = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {name: signal.signal(name, signal.default_int_handler) for name in names}
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)
