"""The command line: ``spite-env duel A B``, ``tournament``, ``play``, ``watch``, ``verify`` and ``dataset``."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from spite_env import __version__
from spite_env.arena import ON_ERROR, duel
from spite_env.observation import ENCODINGS
from spite_env.rewards import REWARDS
from spite_env.rules import PRESETS, Rules
from spite_env.sequential import SequentialTest

#: Games that a duel plays by default, and the most that it plays until it is decided.
GAMES, MOST_GAMES = 1000, 100_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        arguments: The words after the command's name; default: those of the process.

    Returns:
        The exit status: 0, or 1 where a judgement fails. Wrong usage exits with 2.
    """
    parser = argparse.ArgumentParser(prog="spite-env", description="Spite & Malice for reinforcement learning.")
    parser.add_argument("--version", action="version", version=f"spite-env {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    variant = argparse.ArgumentParser(add_help=False)
    variant.add_argument("--rules", default="g4a", choices=PRESETS, help="the variant (default: %(default)s)")
    variant.add_argument(
        "--set", action="append", default=[], metavar="FIELD=VALUE", help="change a field of the rules (repeatable)"
    )

    playing = argparse.ArgumentParser(add_help=False, parents=[variant])
    playing.add_argument("--seed", type=int, default=0, help="determines all games (default: %(default)s)")
    playing.add_argument(
        "--on-error", default="stop", choices=ON_ERROR, help="a policy that misbehaves does this (default: %(default)s)"
    )
    playing.add_argument("--time-limit", type=float, metavar="SECONDS", help="for a decision (default: none)")
    playing.add_argument("--json", action="store_true", help="print the result as JSON")

    duels = commands.add_parser("duel", parents=[playing], help="play two policies against each other on paired deals")
    duels.add_argument("policies", nargs=2, metavar="POLICY", help="a name, or package.module:name")
    duels.add_argument(
        "--games",
        type=int,
        help=f"games to play, an even number; with --until-decided the most (default: {GAMES}, then {MOST_GAMES})",
    )
    duels.add_argument(
        "--until-decided",
        action="store_true",
        help="stop when one policy is shown better, or both equal within the margin",
    )
    for name, meaning in (
        ("margin", "the (wins - losses) / games that counts as equal"),
        ("alpha", "most probability of calling a policy better that is not"),
        ("beta", "most probability of calling policies equal that are the margin apart"),
    ):
        default = getattr(SequentialTest, name)
        duels.add_argument(f"--{name}", type=float, help=f"for --until-decided: {meaning} (default: {default})")
    duels.add_argument("--records", metavar="FILE", help="write every game to FILE, one JSON record a line")
    duels.set_defaults(run=_duel)

    tournaments = commands.add_parser(
        "tournament", parents=[playing], help="play each policy against each other one, and rate them"
    )
    tournaments.add_argument("policies", nargs="+", metavar="POLICY", help="a name, or package.module:name")
    tournaments.add_argument(
        "--games", type=int, default=GAMES, help="of each two policies, an even number (default: %(default)s)"
    )
    tournaments.add_argument(
        "--results", metavar="FILE", help="write what has been played to FILE; what it holds is not played again"
    )
    tournaments.add_argument("--workers", type=int, default=1, metavar="N", help="processes (default: %(default)s)")
    tournaments.add_argument("--ray", metavar="ADDRESS", help="play on a Ray cluster; 'local' starts one here")
    tournaments.add_argument("--csv", metavar="FILE", help="write the duels to FILE")
    tournaments.add_argument("--heatmap", metavar="FILE.png", help="draw the margins")
    tournaments.set_defaults(run=_tournament)

    play = commands.add_parser("play", parents=[variant], help="play against a policy, here or in a browser")
    play.add_argument(
        "--against",
        metavar="POLICY",
        help="a name, or package.module:name (default: expert, or greedy without a checkout)",
    )
    play.add_argument("--seed", type=int, help="determines the first game, or match (default: a random one)")
    play.add_argument("--match", action="store_true", help="play matches to 50 points instead of single games")
    play.add_argument("--games", type=int, metavar="N", help="stop after N games, or matches (default: when you leave)")
    play.add_argument("--seat", type=int, default=0, choices=(0, 1), help="yours (default: %(default)s)")
    play.add_argument("--records", metavar="FILE", help="append the record of every game to FILE")
    play.add_argument("--hint", metavar="POLICY", help="who gives hints (default: as for --against)")
    play.add_argument("--web", action="store_true", help="serve a page to play in, for this machine alone")
    play.add_argument("--port", type=int, metavar="N", help="the page's port; 0 takes a free one (default: 8000)")
    play.set_defaults(run=_play)

    verify = commands.add_parser("verify", help="replay game records and judge them")
    verify.add_argument("file", metavar="FILE")
    verify.add_argument("--check-seed", action="store_true", help="deals and shuffles must be those of the seed, too")
    verify.set_defaults(run=_verify)

    dataset = commands.add_parser("dataset", help="turn game records into arrays for imitation and offline RL")
    dataset.add_argument("file", metavar="FILE")
    dataset.add_argument("out", metavar="OUT.npz")
    dataset.add_argument("--encoding", default="onehot", choices=ENCODINGS, help="(default: %(default)s)")
    dataset.add_argument(
        "--side-depth", type=int, default=3, metavar="N", help="side-pile cards to show below the tops (default: 3)"
    )
    dataset.add_argument("--reward", default="win", choices=REWARDS, help="(default: %(default)s)")
    dataset.add_argument("--gamma", type=float, default=1.0, metavar="G", help="the discount (default: none)")
    dataset.add_argument("--player", metavar="NAME", help="only the decisions of the player of this name")
    dataset.add_argument("--winners", action="store_true", help="only the decisions of those who won")
    dataset.set_defaults(run=_dataset)

    watches = commands.add_parser("watch", help="watch two policies play, or step through recorded games")
    watches.add_argument("what", nargs="+", metavar="POLICY", help="two policies, or instead one file of records")
    watches.add_argument("--rules", choices=PRESETS, help="the variant that policies play (default: g4a)")
    watches.add_argument("--set", action="append", default=[], metavar="FIELD=VALUE", help="as for duel")
    watches.add_argument("--seed", type=int, help="that of a duel whose first game policies play (default: 0)")
    watches.add_argument("--game", type=int, metavar="N", help="begin with this record of the file (default: 0)")
    watches.add_argument("--html", metavar="OUT", help="write the game to a page that shows it in a browser")
    watches.add_argument(
        "--perspective",
        default="mover",
        choices=("0", "1", "mover", "all"),
        help="show the hand of player 0, of player 1, of the player to move, or every card (default: %(default)s)",
    )
    watches.add_argument("--speed", type=float, default=2.0, help="decisions a second (default: %(default)s)")
    watches.add_argument(
        "--evaluator",
        default="rollouts",
        metavar="POLICY",
        help="ask this about every decision: rollouts of greedy, another policy that tells what it thinks, or none "
        "(default: %(default)s)",
    )
    watches.set_defaults(run=_watch)

    options = parser.parse_args(arguments)
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())  # where a policy of one's own is likely to be
    try:
        status: int = options.run(options)
        sys.stdout.flush()
    except BrokenPipeError:  # whoever reads the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (ValueError, ImportError, OSError, MemoryError, OverflowError, RecursionError) as error:
        print(f"spite-env {options.command}: error: {error or type(error).__name__}", file=sys.stderr)
        return 2
    return status


def parse_rules(preset: str, changes: Sequence[str]) -> Rules:
    """Return a preset with changes of the form ``field=value``; values are JSON, or plain words.

    Raises:
        ValueError: an unknown preset, field or value.
    """
    values = {}
    for change in changes:
        name, equals, value = change.partition("=")
        if not equals:
            raise ValueError(f"--set {change!r} has no value; the form is field=value")
        try:
            values[name] = json.loads(value.lower() if value in ("True", "False") else value)
        except json.JSONDecodeError:
            values[name] = None if value == "None" else value
    return Rules.preset(preset).replace(**values)


def _duel(options: argparse.Namespace) -> int:
    from spite_env.record import record_writer
    from spite_env.tables import make_console, print_duels

    console = None if options.json else make_console()
    rules = parse_rules(options.rules, options.set)
    first, second = options.policies
    given = {name: getattr(options, name) for name in ("margin", "alpha", "beta")}
    given = {name: value for name, value in given.items() if value is not None}
    if given and not options.until_decided:
        raise ValueError(f"{', '.join(f'--{name}' for name in given)}: only with --until-decided")
    test = SequentialTest(**given) if options.until_decided else None
    games = options.games if options.games is not None else GAMES if test is None else MOST_GAMES
    with record_writer(options.records) if options.records is not None else nullcontext() as write:
        result = duel(
            first,
            second,
            rules,
            games=games,
            seed=options.seed,
            record=write,
            until_decided=test,
            on_error=options.on_error,
            time_limit=options.time_limit,
        )
    if console is None:
        print(json.dumps(result.to_dict(), indent=2))
    else:
        print_duels(console, result)
        console.print(f"{result.decisions_per_second:,.0f} decisions a second, {result.seconds:.1f} s")
    return 0


def _tournament(options: argparse.Namespace) -> int:
    from spite_env.heatmap import check_matplotlib, save_heatmap
    from spite_env.tables import make_console, print_tournament, write_csv
    from spite_env.tournament import tournament

    console = None if options.json else make_console()
    if options.heatmap is not None:
        check_matplotlib()
    for path in filter(None, (options.csv, options.heatmap)):
        if not Path(path).absolute().parent.is_dir():
            raise ValueError(f"{path} can't be written: there is no folder {Path(path).parent}")
    shared = ("games", "seed", "on_error", "time_limit", "workers", "ray")
    result = tournament(
        options.policies,
        parse_rules(options.rules, options.set),
        file=options.results,
        progress=_show_progress if sys.stderr.isatty() else None,
        **{name: getattr(options, name) for name in shared},
    )
    if console is None:
        print(json.dumps(result.to_dict(), indent=2))
    else:
        print_tournament(console, result)
    if options.csv is not None:
        write_csv(options.csv, result)
    if options.heatmap is not None:
        save_heatmap(options.heatmap, result)
    return 0


def _show_progress(played: int, total: int) -> None:
    print(f"{played} of {total} pairs", end="\n" if played == total else "\r", file=sys.stderr, flush=True)


def _play(options: argparse.Namespace) -> int:
    from spite_env.play.command import play

    rules = parse_rules(options.rules, options.set)
    chosen = ("against", "match", "seed", "games", "seat", "records", "hint", "web", "port")
    return play(rules, **{name: getattr(options, name) for name in chosen})


def _verify(options: argparse.Namespace) -> int:
    from spite_env.verify import verify_file

    problems, count = verify_file(options.file, check_seed=options.check_seed)
    for problem in problems:
        print(problem)
    print(f"{count} records, {len(problems)} wrong")
    return 1 if problems else 0


def _watch(options: argparse.Namespace) -> int:
    from spite_env.watch import watch

    plain = options.rules is None and not options.set
    rules = None if plain else parse_rules(options.rules or "g4a", options.set)
    chosen = ("seed", "game", "html", "perspective", "speed", "evaluator")
    watch(options.what, rules, **{name: getattr(options, name) for name in chosen})
    return 0


def _dataset(options: argparse.Namespace) -> int:
    from spite_env.dataset import from_records

    chosen = ("encoding", "side_depth", "reward", "gamma", "player", "winners")
    data = from_records(options.file, **{name: getattr(options, name) for name in chosen})
    data.save(options.out)
    print(f"{len(data.players)} records, {data.num_rows} decisions")
    return 0


if __name__ == "__main__":
    sys.exit(main())
