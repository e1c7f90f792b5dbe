"""Attacks a device by SIP and RTP as strangers do, while bystanders make calls that must not suffer.

Exits with 0 if no fault was found; with --fault and --faults, if each simulated fault was found.
"""

import argparse
import asyncio
import json
import sys

from faults import PATHS
from model import MODES, Model, State, attack


async def finds(options: argparse.Namespace, name: str) -> bool:
    """Whether the model finds a simulated fault."""
    for mode in MODES if options.mode is None else [options.mode]:
        model = Model(options.handset, mode, options.seed, PATHS[name], options.deed)
        await attack(model, options.seconds, options.seconds, State(None))
        for fault in model.faults:
            if PATHS[name].shows in fault["fault"]:
                print(f"found {name} ({mode}) after {fault['at_seconds']:.0f} s: {fault['fault'][:160]}", flush=True)
                return True
        withheld = f"; withheld beside a busy machine: {len(model.withheld)}, such as {model.withheld[-1][:160]}" if model.withheld else ""
        print(f"{name} ({mode}) was not found{withheld}", flush=True)
    return False


async def main() -> bool:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("handset", help="the command that is attacked")
    parser.add_argument(
        "--seconds", type=int, default=60, help="how long the attacks last, in all modes together; with --fault and --faults each of them"
    )
    parser.add_argument("--episode-seconds", type=int, default=60, help="the length of an episode")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mode", choices=MODES, help="calls_from of the device; both in turn unless given")
    parser.add_argument("--episode", type=int, help="run only this episode")
    parser.add_argument("--state", help="a file that keeps the episodes, so that a run continues after the last one")
    parser.add_argument("--deed", action="append", help="a deed; strangers do only those that are given")
    parser.add_argument("--rest", type=int, default=60, help="seconds after the attack until memory is checked again")
    parser.add_argument("--fault", choices=sorted(PATHS), help="simulate a fault, which must be found")
    parser.add_argument("--faults", action="store_true", help="simulate each fault in turn")
    options = parser.parse_args()
    if options.fault or options.faults:
        names = [options.fault] if options.fault else sorted(PATHS)
        missed = [name for name in names if not await finds(options, name)]
        print(f"{len(names) - len(missed)} of {len(names)} faults were found" + f", not {missed}" * bool(missed))
        return bool(missed)
    state, models = State(options.state), []
    modes = [options.mode] if options.mode else MODES
    for mode in modes:
        model = Model(options.handset, mode, options.seed, alone=options.deed)
        models.append(model)
        await attack(model, options.seconds / len(modes), options.episode_seconds, state, options.episode, options.rest)
        for fault in model.faults:
            print(json.dumps({"mode": mode, "seed": options.seed} | fault, indent=1))
    print("\n".join(model.report() for model in models))
    faults = sum(len(model.faults) for model in models)
    print(f"{faults} faults" if faults else "no fault was found")
    return faults > 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
