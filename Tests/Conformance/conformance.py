"""Checks an exchange against the contract over the wire: runs the tests of this folder against `handset serve`.

    conformance.py HANDSET [--rounds N] [--model-seconds N] [--seed N] [PATTERN]

Each test is a coroutine whose docstring starts with the rules that it checks; its parameters are what it needs: an
exchange by the name of its configuration, or `rounds`. With PATTERN only those whose name or docstring has it.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import inspect
import pathlib
import re
import sys
import time
import traceback
from collections.abc import Callable, Coroutine
from typing import Any

import client
from exchange import Exchange

# The configurations of the exchanges that tests ask for, beside the common one (exchange.py).
CONFIGURATIONS: dict[str, dict] = {
    "exchange": {},
    # Short timeouts.
    "hasty": {"keepalive_seconds": 3, "resume_window_seconds": 1},
    # Short tokens.
    "fleeting": {"token_lifetime_seconds": 5, "token_notice_seconds": 2},
    # Low limits. Clients may set their addresses by a header.
    "strict": {
        "failed_logins_per_address": 5,
        "failed_logins_per_account": 10,
        "failed_login_seconds": 600,
        "messages_per_second": 20,
        "message_burst": 40,
        "trusted_proxies": ["127.0.0.1"],
        "anonymous": False,
        "presence": False,
    },
    # Nothing is lost.
    "durable": {"database": "exchange.sqlite", "database_durability": "normal"},
    # It is asked to go down, and to move its devices.
    "restless": {},
}
AT_ONCE = 12  # Tests at a time. Races run one by one.
Test = Callable[..., Coroutine]
HANGS = 300  # Seconds after which a test that has not ended has failed.


class Stage:
    """The exchanges, each started when it is first asked for."""

    def __init__(self, handset: str, rounds: int, model_seconds: int, seed: int) -> None:
        self.handset, self.rounds, self.running, self.findings = handset, rounds, {}, []
        self.model_seconds, self.seed = model_seconds, seed

    async def exchange(self, name: str) -> Exchange:
        if name not in self.running:
            exchange = Exchange(self.handset, name, **CONFIGURATIONS[name])
            self.running[name] = asyncio.create_task(exchange.start())
        return await asyncio.shield(self.running[name])

    async def given(self, test: Test) -> dict:
        values: dict[str, Any] = {}
        for name in inspect.signature(test).parameters:
            if name == "stage":
                values[name] = self
            elif name == "rounds":
                values[name] = self.rounds
            else:
                values[name] = await self.exchange(name)
        return values

    async def stop(self) -> None:
        for exchange in await asyncio.gather(*self.running.values(), return_exceptions=True):
            if isinstance(exchange, Exchange):
                await exchange.stop()
                exchange.folder.cleanup()


def collect(pattern: str) -> list[Test]:
    """The tests, in the order of their files and lines."""
    tests = []
    for path in sorted(pathlib.Path(__file__).parent.glob("test_*.py")):
        module = importlib.import_module(path.stem)
        tests += [test for name, test in vars(module).items() if name.startswith("test_")]
    for test in tests:
        assert re.match(r"[A-Z]+-\d+[^\n]*: ", test.__doc__ or ""), f"{test.__name__} names no rule"
    wanted = re.compile(pattern, re.IGNORECASE)
    return [test for test in tests if wanted.search(f"{test.__module__} {test.__name__} {test.__doc__}")]


async def run(stage: Stage, test: Test) -> bool:
    """Runs one test and prints the result. Returns whether it passed."""
    started = time.monotonic()
    title = " ".join(test.__doc__.split())
    try:
        async with asyncio.timeout(HANGS + stage.model_seconds):
            await test(**await stage.given(test))
    except Exception:  # A test may fail in any way.
        print(f"FAILED {title}\n{traceback.format_exc(-4)}", flush=True)
        return False
    print(f"ok     {title} ({time.monotonic() - started:.1f} s)", flush=True)
    return True


async def main() -> bool:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("handset", help="the command that is tested")
    parser.add_argument("--rounds", type=int, default=1000, help="how often each race is run")
    parser.add_argument("--model-seconds", type=int, default=10, help="how long the attackers' model runs (test_model.py)")
    parser.add_argument("--seed", type=int, default=1, help="what the attackers' model is seeded with, 1 unless given")
    parser.add_argument("pattern", nargs="?", default="", help="a regular expression for names and descriptions")
    options = parser.parse_intermixed_args()
    started = time.monotonic()
    tests = collect(options.pattern)
    if not tests:
        sys.exit(f"no test has {options.pattern!r} in its name or description")
    stage = Stage(options.handset, options.rounds, options.model_seconds, options.seed)
    gate = asyncio.Semaphore(AT_ONCE)

    async def guarded(test: Test) -> bool:
        async with gate:
            return await run(stage, test)

    def order(test: Test) -> tuple[bool, bool]:
        return test.__module__ == "test_throughout", test.__module__ == "test_races"

    try:
        slow = [asyncio.create_task(run(stage, test)) for test in tests if getattr(test, "waits", False)]
        quick = [test for test in tests if not getattr(test, "waits", False) and not any(order(test))]
        passed = list(await asyncio.gather(*map(guarded, quick)))
        passed += [await run(stage, test) for test in tests if order(test) == (False, True)]
        passed += await asyncio.gather(*slow)
        passed += [await run(stage, test) for test in tests if order(test)[0]]
    finally:
        await stage.stop()
    for finding in stage.findings:
        print(finding)
    for violation in client.violations[:20]:
        print(f"FAILED in passing: {violation}")
    rules = {rule for test in tests for rule in re.findall(r"[A-Z]+-\d+", test.__doc__.split(": ")[0])}
    failed = len(passed) - sum(passed) + len(client.violations)
    print(
        f"{len(tests)} tests of {len(rules)} rules in {time.monotonic() - started:.0f} s, {f'{failed} failed' if failed else 'all passed'}"
    )
    return failed > 0


def waits(test: Any) -> Any:
    """Marks a test that mostly waits, so that it does not hold up others."""
    test.waits = True
    return test


if __name__ == "__main__":
    sys.modules["conformance"] = sys.modules["__main__"]
    sys.exit(asyncio.run(main()))
