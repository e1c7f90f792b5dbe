#!/usr/bin/env python3
"""Prints the results of scripts/bench as a table, or with --json as one object.

usage: report.py [--json] DIRECTORY

Exits with status 1 when the figures cannot be believed: a device that answers too little, or with too little, has
not done the work that its cost is compared for.
"""

import json
import pathlib
import statistics
import sys

#: Share of the packets sent that must come back, authenticated.
LEAST_ANSWERED = 0.98
#: Bytes of Opus in an answer, relative to the floor's: comfort noise or silence would be far below.
LEAST_PAYLOAD, MOST_PAYLOAD = 0.85, 1.3
#: Parts of the test rig that run in the measured process.
NOT_A_CALL = ("card", "slow")
#: By how much an attack may raise P99.9 of other users' invites.
MOST_BYSTANDER_MS = 50
#: CPUs that something else may use during a measurement before the figures are called unquiet.
UNQUIET_CPUS = 0.25


def load(directory, section):
    path = directory / f"{section}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def load_object(directory, name):
    path = directory / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else {}


def of_kind(notes, kind, calls):
    return [note["of"] for note in notes if note["kind"] == kind and note["calls"] == calls]


def median(measurements, key="cpu_us"):
    return statistics.median(measurement[key] for measurement in measurements)


def cost(notes, problems):
    rows = []
    for calls in dict.fromkeys(note["calls"] for note in notes):
        tight, paced, call = (of_kind(notes, kind, calls) for kind in ("tight", "paced", "call"))
        row = {"calls": calls, "tight_us": round(median(tight), 1), "paced_us": round(median(paced), 1)}
        if call:
            # Floor and device are compared within a round, because the machine's other work changes from round to round.
            ratios = [ours["cpu_us"] / floor["cpu_us"] for ours, floor in zip(call, paced)]
            row["call_us"] = round(median(call), 1)
            row["ratio_paced"] = round(statistics.median(ratios), 3)
            row["ratio_paced_rounds"] = [round(ratio, 3) for ratio in ratios]
            row["ratio_tight"] = round(median(call) / median(tight), 3)
        row["suite"] = tight[0]["suite"]
        row["others_cpu"] = round(max(measurement["others_cpu"] for measurement in paced + call), 2)
        rows.append(row)
        for measurement in paced:
            check_answers(f"cost, {calls} calls, paced floor", measurement, None, problems)
        for measurement in call:
            check_answers(f"cost, {calls} calls, device", measurement, median(paced, "payload_bytes"), problems)
    return rows


def check_answers(what, measurement, payload, problems):
    answered = measurement["received"] / max(measurement["sent"], 1)
    if answered < LEAST_ANSWERED or measurement["rejected"] > 0:
        problems.append(
            f"{what}: {measurement['received']} of {measurement['sent']} packets came back, {measurement['rejected']} did not authenticate"
        )
    elif payload and not LEAST_PAYLOAD <= measurement["payload_bytes"] / payload <= MOST_PAYLOAD:
        problems.append(
            f"{what}: answers carry {measurement['payload_bytes']:.0f} bytes of Opus, the floor's {payload:.0f}: "
            "not the same speech with the same settings"
        )


def memory(notes):
    idle = [note["of"]["rss_kb"] for note in notes if note["kind"] == "idle"][0]
    points = [{"calls": note["calls"], "rss_kb": note["of"]["rss_kb"]} for note in notes if note["kind"] == "call"]
    result = {"idle_kb": idle, "points": points}
    if points:
        # An idle `handset run` has released the code that calls need, so added calls are counted from the first call on.
        least, most = (choose(points, key=lambda point: point["calls"]) for choose in (min, max))
        if least is most:
            least = {"calls": 0, "rss_kb": idle}
        result["per_call_kb"] = round((most["rss_kb"] - least["rss_kb"]) / (most["calls"] - least["calls"]), 1)
    return result


def jitter(directory):
    rows = load_object(directory, "jitter").get("jitter", [])
    quality = load_object(directory, "quality").get("quality", {})
    for row in rows:
        row["quality"] = quality.get(row["profile"], {})
    return rows


def keys(notes):
    """Calls with ICE and DTLS compared with calls with SDES keys, within a round like the floors."""
    calls = notes[0]["calls"]
    rows = {}
    for kind, key, number in (("calling", "cpu_us", calls), ("making", "cpu_ms", 1)):
        sdes, dtls = (of_kind(notes, f"{kind} {keys_}", number) for keys_ in ("sdes", "dtls"))
        rows[kind] = {
            f"sdes_{key}": round(median(sdes, key), 2),
            f"dtls_{key}": round(median(dtls, key), 2),
            "ratio": round(statistics.median(ours[key] / plain[key] for ours, plain in zip(dtls, sdes)), 3),
        }
    return {"calls": calls, **rows}


def pathloss(trials, problems):
    rows = []
    for kind in dict.fromkeys(trial["kind"] for trial in trials):
        of_kind = [trial for trial in trials if trial["kind"] == kind]
        row = {"kind": kind, "calls": len(of_kind)}
        for figure in ("path_ms", "silence_ms"):
            values = sorted(value for trial in of_kind for value in trial[figure].values() if value is not None)
            if values:
                row[figure] = {"p50": statistics.median(values), "max": values[-1]}
        for trial in of_kind:
            if trial["outcome"] != "completed" or None in trial["path_ms"].values():
                problems.append(f"pathloss, {kind}: a call ended as {trial['outcome']}, with media after {trial['path_ms']} ms")
        rows.append(row)
    return rows


def overload(rows, problems):
    for row in rows:
        if row["failed"] > 0:
            problems.append(f"overload, {row['calls']} calls: {row['failed']} were neither accepted nor refused as busy")
        if row["others_cpu"] > UNQUIET_CPUS:
            problems.append(f"overload, {row['calls']} calls: others used {row['others_cpu']} CPUs")
    return rows


def mouth(notes, problems):
    rows = []
    for note in notes:
        if note["kind"] != "chromium":
            continue
        browsers = note["of"]
        rows.append(
            {
                "frame_ms": note["calls"],
                "chromium": browsers["version"],
                "ways": browsers["ways"],
                "median_ms": max(way["median_ms"] for way in browsers["ways"]),
                "budget_ms": {"jitter_buffer": max(browsers["jitter_buffer_ms"]), "playout": max(browsers["playout_ms"])},
            }
        )
        for way in browsers["ways"]:
            if way["heard"] < 0.9 * way["said"]:
                problems.append(f"mouth, Chromium: {way['heard']} of {way['said']} words were heard")
    for note in notes:
        if note["kind"] != "call":
            continue
        ways, report = note["of"]["ways"], note["of"]["report"]
        rows.append(
            {
                "frame_ms": note["calls"],
                "speakerphone": note["of"]["processing"],
                "ways": ways,
                "median_ms": max(way["median_ms"] for way in ways),
                "budget_ms": report.get("delay_ms", {}),
            }
        )
        for way in ways:
            if way["heard"] < 0.9 * way["said"]:
                problems.append(f"mouth, frames of {note['calls']} ms: {way['heard']} of {way['said']} words were heard")
        if report["outcome"] != "completed":
            problems.append(f"mouth, frames of {note['calls']} ms: the call ended as {report['outcome']}")
    return rows


def speakerphone(notes, problems):
    """The same call without and with all processing, and the floor: medians over rounds, microseconds for 20 ms."""
    calls = [note["of"] for note in notes if note["kind"] == "call"]
    result = {"paced_us": round(median([note["of"] for note in notes if note["kind"] == "paced"]), 1)}
    for name, processing in (("off", False), ("on", True)):
        rounds = [call for call in calls if call["processing"] == processing]
        for call in rounds:
            if call["report"]["outcome"] != "completed" or call["room"]["late"] > 0:
                problems.append(
                    f"speakerphone {name}: the call ended as {call['report']['outcome']}, and the room was late "
                    f"{call['room']['late']} times"
                )
        rooms = [call["room"] for call in rounds]
        result[name] = {
            "call_us": round(statistics.median(room["near"]["call_us"] for room in rooms), 1),
            "cards_us": round(statistics.median(room["near"]["cards_us"] for room in rooms), 1),
            "far_call_us": round(statistics.median(room["far"]["call_us"] for room in rooms), 1),
            **{key: statistics.median(room[key] for room in rooms) for key in ("played_dbfs", "echo_dbfs", "returned_dbfs")},
            "accounts": [call["report"]["sound"] for call in rounds],
        }
    return result


def xruns(notes, problems):
    note = notes[0]
    call = note["of"]
    if call["here"]["outcome"] != "completed":
        problems.append(f"xruns: the call ended as {call['here']['outcome']}")
    if call["idle_share"] > 0.02:
        problems.append(f"xruns: the processors idled {100 * call['idle_share']:.0f} % of the time")
    return {"minutes": note["calls"], **call}


def instructions(notes, problems):
    rows = [{"kind": note["kind"], "complexity": note["calls"], **note["of"]} for note in notes]
    for row in rows:
        # Fewer frames are encoded if the device could not keep up.
        if not 45 <= row["frames"] / row["seconds"] <= 55:
            problems.append(
                f"instructions, {row['kind']}, complexity {row['complexity']}: {row['frames']} frames were encoded in "
                f"{row['seconds']:g} s; try a greater --slowness"
            )
        row["total"] = sum(number for part, number in row["instructions"].items() if part not in NOT_A_CALL)
    return rows


def drift(rows, problems):
    for row in rows:
        for name in ("playback", "capture"):
            if row[name]["lost"] or row[name]["heard"] < row["hours"] * 3590:
                problems.append(
                    f"drift: {row[name]['heard']} impulses were heard in {row['hours']} hours of {name}, and {row[name]['lost']} lost"
                )
    return rows


def believable_load(rows, problems):
    for row in rows:
        count = row["connections"]
        if row["held"]["held"] != count:
            problems.append(f"load: only {row['held']['held']} of {count} connections were there")
        if row["resume"]["resumed"] != count:
            problems.append(f"load: only {row['resume']['resumed']} of {count} devices resumed their sessions")
        failed = sum(round_["failed"] for round_ in row["rounds"] + [row["half"]])
        if failed:
            problems.append(f"load, {count} connections: {failed} invites were not completed")
    return rows


def bystander(rows, problems):
    for row in rows:
        what = f"bystander, {row['attackers']} attackers"
        for key in ("responses", "received"):
            if row[key]["p999_difference_ms"] > MOST_BYSTANDER_MS:
                problems.append(f"{what}: P99.9 of {key} is {row[key]['p999_difference_ms']:.0f} ms above the control run's")
        if row["refused"] or row["lost"]:
            problems.append(f"{what}: {row['refused']} invites were refused and {row['lost']} lost")
    return rows


def bots(rows, problems):
    by_kind = {row["kind"]: row for row in rows if row["kind"] in ("clear", "marks", "program marks", "stall")}
    trips = [row for row in rows if row["kind"] == "round trip"]
    costs = [row for row in rows if row["kind"] == "cost"]
    for row in costs:
        # An echo of 8 kHz is encoded as such, so its packets are smaller.
        check_answers(f"bots, {row['by']}", row, None, problems)
        row["over_echo"] = round(row["cpu_us"] / costs[0]["cpu_us"], 3)
    if (row := by_kind.get("clear")) and row["failed"] > row["wire"]["count"] / 10:
        problems.append(f"bots: after {row['failed']} of the orders to clear no silence came, or no sound was before")
    for row in trips:
        if row["back"]["count"] < 0.9 * row["said"]:
            problems.append(f"bots: {row['back']['count']} of {row['said']} tones came back by way of {row['by']}")
    if (row := by_kind.get("marks")) and row["missing"]:
        problems.append(f"bots: {row['missing']} of {row['marks']} marks cannot be distinguished, or did not come")
    if (row := by_kind.get("program marks")) and row["exact"] < row["marks"]:
        problems.append(f"bots: {row['exact']} of {row['marks']} marks of programs name the sample behind which they were set")
    if row := by_kind.get("stall"):
        if not row["said_so"]:
            problems.append("bots: the log does not mention the bot that reads nothing")
        for other in row["others"]:
            if other["packets"] < 49 * row["seconds"]:
                problems.append(f"bots: {other['packets']} packets came in a call beside a bot that reads nothing")
    beside = [row for row in rows if row["kind"] == "beside"]
    for row in beside:
        if row["measured"] < row["calls"]:
            problems.append(f"bots: {row['measured']} of {row['calls']} calls by way of {row['by']} have a delay")
    return {**by_kind, "trips": trips, "costs": costs, "beside": beside}


def collect(directory):
    result, problems = {"run": load_object(directory, "run")}, []
    notes = {section: load(directory, section) for section in ("cost", "memory", "setup")}
    if notes["cost"]:
        result["cost"] = cost(notes["cost"], problems)
    if rows := load(directory, "codecs"):
        result["codecs"] = rows
    if notes["memory"]:
        result["memory"] = memory(notes["memory"])
    if notes["setup"]:
        result["setup"] = notes["setup"][0]["of"]
    if notes := load(directory, "mouth"):
        result["mouth"] = mouth(notes, problems)
    if rows := load(directory, "overload"):
        result["overload"] = overload(rows, problems)
    if notes := load(directory, "speakerphone"):
        result["speakerphone"] = speakerphone(notes, problems)
    if notes := load(directory, "xruns"):
        result["xruns"] = xruns(notes, problems)
    if notes := load(directory, "instructions"):
        result["instructions"] = instructions(notes, problems)
    if rows := load(directory, "drift"):
        result["drift"] = drift(rows, problems)
    if rows := jitter(directory):
        result["jitter"] = rows
    if keys_ := load(directory, "keys"):
        result["keys"] = keys(keys_)
    if trials := load(directory, "pathloss"):
        result["pathloss"] = pathloss(trials, problems)
    if rows := load(directory, "load"):
        result["load"] = believable_load(rows, problems)
    if rows := load(directory, "bystander"):
        result["bystander"] = bystander(rows, problems)
    if rows := load(directory, "voice"):
        result["voice"] = rows
    if rows := load(directory, "sip"):
        result["sip"] = rows
        problems += [
            f"sip: {row['failed']} of the calls at {row['rate']} a second failed" for row in rows if row["kind"] == "rate" and row["failed"]
        ]
    if rows := load(directory, "bots"):
        result["bots"] = bots(rows, problems)
    result["problems"] = problems
    return result


def print_run(run):
    """The provenance that every published figure needs."""
    if run:
        print(
            f"Measured: commit {run['commit']}; {run['machine']}, {run['system']}, load average {run['load_average']}; "
            f"{run['rounds']} rounds of {run['seconds']} s where a section takes rounds"
        )


def print_table(result):
    print_run(result.get("run"))
    if rows := result.get("cost"):
        print(f"Cost of a call: CPU time for 20 ms, full duplex ({rows[0]['suite']})")
        print("  calls  tight floor  paced floor  handset run  over paced  over tight")
        for row in rows:
            ours = (
                f"{row['call_us']:8.1f} µs  {row['ratio_paced']:10.3f}  {row['ratio_tight']:10.3f}" if "call_us" in row else "           –"
            )
            print(f"  {row['calls']:5}  {row['tight_us']:8.1f} µs  {row['paced_us']:8.1f} µs  {ours}")
            if row["others_cpu"] > UNQUIET_CPUS:
                print(f"         (the machine was not quiet: others used up to {row['others_cpu']} CPUs)")
    if rows := result.get("codecs"):
        print("Codecs: CPU time for 20 ms, back to back")
        for row in rows:
            level = "" if row["complexity"] is None else f", complexity {row['complexity']}"
            print(f"  {row['codec'] + level:20}  {row['encode_us']:8.1f} µs encoded  {row['decode_us']:8.1f} µs decoded")
    if memory_ := result.get("memory"):
        points = "".join(f"{point['rss_kb'] / 1024:.1f} MB with {point['calls']}, " for point in memory_["points"])
        print(
            f"Memory of handset run: {memory_['idle_kb'] / 1024:.1f} MB idle, {points}"
            f"{memory_.get('per_call_kb', float('nan')):.0f} kB for each added call"
        )
    if setup := result.get("setup"):
        print(f"Set-up, invite to media both ways: p50 {setup['p50_ms']:.1f} ms, p99 {setup['p99_ms']:.1f} ms, {setup['calls']} calls")
    if rows := result.get("mouth"):
        print_mouth(rows)
    if rows := result.get("overload"):
        print_overload(rows)
    if row := result.get("speakerphone"):
        print_speakerphone(row)
    if row := result.get("xruns"):
        print_xruns(row)
    if rows := result.get("instructions"):
        print_instructions(rows)
    if rows := result.get("drift"):
        print_drift(rows)
    if row := result.get("keys"):
        calling, making = row["calling"], row["making"]
        print(
            f"SDES keys, and ICE with DTLS: {calling['sdes_cpu_us']:.1f} and {calling['dtls_cpu_us']:.1f} µs for 20 ms of a "
            f"call ({row['calls']} at a time; {calling['ratio']:.3f}), {making['sdes_cpu_ms']:.1f} and "
            f"{making['dtls_cpu_ms']:.1f} ms for a call of a second from invite to end"
        )
    if rows := result.get("pathloss"):
        print_pathloss(rows)
    if rows := result.get("load"):
        print_load(rows)
    if rows := result.get("bystander"):
        print_bystander(rows)
    if rows := result.get("jitter"):
        print_jitter(rows)
    if rows := result.get("voice"):
        print_voice(rows)
    if rows := result.get("sip"):
        print_sip(rows)
    if row := result.get("bots"):
        print_bots(row)
    for problem in result["problems"]:
        print(f"NOT BELIEVABLE: {problem}")


def print_voice(rows):
    print("Voice activity on recordings (ms from what a listener hears; p50 and p95)")
    print("  scene                              detector         lowered           stopped           none  false dips/h  false stops")
    for row in rows:
        print(
            f"  {row['scene']:34} {row['detector']:15} {row['dip_p50_ms']:>6} {row['dip_p95_ms']:>6}     {row['stop_p50_ms']:>6} "
            f"{row['stop_p95_ms']:>6}  {row['no_stop']:>8}  {row['false_dips_per_hour']:>12}  {row['false_stops']:>11}"
        )


def print_pathloss(rows):
    print("A call loses its path (p50, max): until media comes on another, and without sound")
    for row in rows:
        path, silence = ({"p50": float("nan"), "max": float("nan"), **row.get(key, {})} for key in ("path_ms", "silence_ms"))
        print(
            f"  {row['kind']:8} {row['calls']} calls  {path['p50']:5.0f} {path['max']:5.0f} ms  "
            f"{silence['p50']:5.0f} {silence['max']:5.0f} ms"
        )


def print_overload(rows):
    print("One worker on one core is offered calls")
    print("  offered  accepted  busy  delivered  from the first packet on  CPU (cores)  complexity at most  as before after")
    for row in rows:
        again = "not in 15 s" if row["recovered_s"] is None else f"{row['recovered_s']:.1f} s"
        limit = "as configured" if row["complexity_limit"] == 10 else str(row["complexity_limit"])
        print(
            f"  {row['calls']:7}  {row['accepted']:8}  {row['busy']:4}  {row['delivered']:9.4f}  {row['delivered_whole']:24.4f}  "
            f"{row['cpu']:11.2f}  {limit:>18}  {again:>15}"
        )


def print_bots(row):
    def spread(times):
        return f"p50 {times['p50_ms']:.1f}, p95 {times['p95_ms']:.1f}, most {times['max_ms']:.1f} ms"

    print("Voice bots in calls, over loopback, with scripted bots")
    if clear := row.get("clear"):
        print(f"  clear, {clear['wire']['count']} times, to the last packet that is not silent: {spread(clear['wire'])}")
        print(f"  and to silence behind the caller's decoder: {spread(clear['decoder'])}")
    for trip in row["trips"]:
        to_bot = f"to the bot's wire: {spread(trip['to_bot'])}; " if trip["to_bot"]["count"] else ""
        print(f"  caller's packet by way of {trip['by']}: {to_bot}back at the caller: {spread(trip['back'])}")
    for other in row["beside"]:
        if other["measured"]:
            print(
                f"  there and back by `handset loopback call`, by way of {other['by']} {other['version'] or ''}: {other['delay_ms']:.1f} "
                f"({other['least_ms']:.1f} to {other['most_ms']:.1f}) ms, {other['calls']} calls"
            )
    for cost_ in row["costs"]:
        print(
            f"  CPU time for 20 ms of one of {cost_['calls']} calls by way of {cost_['by']}: {cost_['cpu_us']:.1f} µs, "
            f"{cost_['over_echo']:.3f} of an echo call's, {cost_['rss_kb'] / 1024:.1f} MB"
            + (f" (others used {cost_['others_cpu']} CPUs)" if cost_["others_cpu"] > UNQUIET_CPUS else "")
        )
    if marks := row.get("marks"):
        memory_ = marks["memory"]
        print(
            f"  {marks['calls']} calls on one core: {marks['exact']} of {marks['marks']} marks came within 10 ms of the packet with "
            f"their last sample, {marks['within_a_frame']} within 20 ms ({spread(marks['from_packet'])})"
        )
        late = "" if marks["prompt"] else "; this process had no real-time priority to note them"
        print(
            f"    {marks['with_its_frame']} were reported with the frame of that sample; frames late: "
            f"{marks['frames_late']['p95_ms']:.0f} (P95), {marks['frames_late']['max_ms']:.0f} at most{late}"
        )
        print(
            f"  memory: {memory_['rss_kb'][0] / 1024:.1f} MB with {memory_['calls'][0]} calls of bots, "
            f"{memory_['rss_kb'][1] / 1024:.1f} MB with {memory_['calls'][1]}: {memory_['per_call_kb']:.0f} kB for each"
        )
    if marks := row.get("program marks"):
        print(f"  {marks['calls']} calls of programs on one core: {marks['exact']} of {marks['marks']} marks name the very sample")
    if stall := row.get("stall"):
        others = stall["others"]
        print(
            f"  a bot that reads nothing for {stall['seconds']} s: memory from {stall['rss_kb'][0] / 1024:.1f} to at most "
            f"{stall['rss_kb'][1] / 1024:.1f} MB; beside it in {len(others)} calls at least {min(o['packets'] for o in others)} packets, "
            f"{max(o['longest_gap_ms'] for o in others):.1f} ms apart at most, and {min(o['tones'] for o in others)} tones came back"
        )


def print_mouth(rows):
    print("Mouth to ear, cards of 10 ms periods, each way (median, least to most)")
    for row in rows:
        ways = "; ".join(f"{way['median_ms']:.1f} ({way['least_ms']:.1f} to {way['most_ms']:.1f}) ms" for way in row["ways"])
        who = (
            f"Chromium {row['chromium']}"
            if "chromium" in row
            else f"frames of {row['frame_ms']} ms, speakerphone {'on ' if row['speakerphone'] else 'off'}"
        )
        print(f"  {who}  {ways}")
        stages = ", ".join(f"{name} {value:.1f}" for name, value in row["budget_ms"].items() if value >= 0.05)
        print(f"    by {'the browsers’' if 'chromium' in row else 'the caller’s'} own account: {stages}")


def print_speakerphone(row):
    print(f"A call on sound cards, CPU time for 20 ms (the cards' own taken off); the paced floor takes {row['paced_us']:.1f} µs")
    for name in ("off", "on"):
        call = row[name]
        print(
            f"  speakerphone {name:3}  {call['call_us']:6.1f} µs, {call['call_us'] / 200:.2f} % of a core; echo "
            f"{call['echo_dbfs']:.1f} dBFS at the microphone, {call['returned_dbfs']:.1f} dBFS where the speaker hears it"
        )
    told = ", ".join(
        "–" if value is None else f"{value:.1f}"
        for value in (account.get("echo_return_loss_enhancement_db") for account in row["on"]["accounts"])
    )
    print(f"  echo lowered by its own account, in each round: {told} dB")


def print_xruns(row):
    print(
        f"{row['minutes']} minutes of a call on sound cards, the processors {100 * (1 - row['idle_share']):.1f} % busy with "
        f"work of nice {row['nice']} and this"
    )
    sound, here, there, machine = row["here"]["sound"], row["here"], row["there"].get("metadata", {}), row["machine"]
    print(
        f"  by the caller's account: the card ran empty {sound['playback_xruns']:.0f} times and over "
        f"{sound['capture_xruns']:.0f} times, {sound['missing_samples']:.0f} samples missing, {sound['delay_jumps']:.0f} jumps of delay, "
        f"{here['packets_late']:.0f} packets late, {here['concealed_ms']:.0f} ms concealed, {here['frames_skipped']:.0f} frames "
        f"skipped; delays held at {sound['playback_target_ms']:.1f} and {sound['capture_target_ms']:.1f} ms"
    )
    told = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in sorted(there.items()) if key != "call")
    print(f"  by the other's: {told}")
    print(
        f"  the machine itself was more than 1, 5 and 15 ms late {machine['over_1_ms']}, {machine['over_5_ms']} and "
        f"{machine['over_15_ms']} times, {machine['worst_ms']:.1f} ms at the most"
    )
    for way in row["ways"]:
        print(
            f"  mouth to ear: {way['heard']} of {way['said']} words heard, after {way['median_ms']:.1f} ms (p99 "
            f"{way['p99_ms']:.1f}, most {way['most_ms']:.1f})"
        )


def print_instructions(rows):
    print("Instructions for 20 ms of a call, in thousands")
    parts = ("opus", "crypto", "speexdsp", "alsa", "libc_libm", "ours", "other")
    print("  call                  complexity" + "".join(f"{part:>10}" for part in parts) + "     total")
    for row in rows:
        print(
            f"  {row['kind']:21} {row['complexity']:10}"
            + "".join(f"{row['instructions'].get(part, 0) / 1000:10.0f}" for part in parts)
            + f"{row['total'] / 1000:10.0f}"
        )


def print_drift(rows):
    print("Sound cards' delay beside its target, over simulated time: mean, RMS and greatest deviation as heard")
    for row in rows:
        for name in ("playback", "capture"):
            line = row[name]
            print(
                f"  {row['hours']:g} h of {name:8} {row[name + '_ppm']:+6.0f} ppm  {line['mean_ms']:6.3f} {line['rms_ms']:6.3f} "
                f"{line['greatest_ms']:6.3f} ms, beyond 2 ms {line['beyond_2_ms']} of {line['heard']} times; rate "
                f"{line['correction_ppm'][0]:.0f} to {line['correction_ppm'][1]:.0f} ppm, {line['jumps']} jumps, "
                f"{line['missing_samples']} samples missing, {line['xruns']} xruns"
            )


def print_load(rows):
    print("An exchange under load: memory for each connection, logins, invites, and coming back after kill -9")
    print("  connections       idle MB  each kB  logins/s  invites/s (CPUs)  at half: p50 ms    p99 ms  back s: p50   99.9 %      all")
    for row in rows:
        half, back = row["half"], row["resume"]
        cpus = statistics.median(round_["cpus"] for round_ in row["rounds"])
        print(
            f"  {row['connections']:11} {'TLS' if row['tls'] else '   '}  {row['idle_kb'] / 1024:7.1f}  "
            f"{row['per_connection_kb']:7.1f}  {row['logins_per_second']:8}  "
            f"{row['per_second']:9.0f} ({cpus:.2f})  {half['p50_ms']:15.2f}  {half['p99_ms']:8.2f}  "
            f"{back['p50_s']:11.2f}  {back['p999_s']:7.2f}  {back['all_s']:7.2f}"
        )


def print_sip(rows):
    print("Calls by SIP over UDP, without media: CPU time of each on one core, and that of SIPp's own callee")
    for row in rows:
        if row["kind"] == "rate":
            print(
                f"  {row['rate']:4} a second  {row['cpu_us']:7.0f} µs of {row['floor_us']:5.0f}, so "
                f"{row['per_second_of_a_core']:5.0f} a second on a core; {row['failed']} failed, {row['repeated']} repeated"
            )
        elif row["kind"] == "accounts":
            print(f"  {row['accounts']} registered accounts: {row['each_kb']} kB each, beside {row['one_kb'] / 1024:.1f} MB with one")
        elif row["kind"] == "memory":
            print(f"  {row['calls']} established calls: {row['each_kb']} kB each, beside {row['idle_kb'] / 1024:.1f} MB")
        else:
            print(f"  from dialling to the INVITE, {row['by']}: {row['p50_ms']} ms, at most {row['max_ms']}")


def print_bystander(rows):
    print("Others' invites beside an attack with room signals, in ms: without it, and with it")
    print("  attackers  until           p50           p99         p99.9   p99.9 more  signals  CPUs")
    for row in rows:
        for key, name in (("responses", "response"), ("received", "received")):
            pairs = "  ".join(
                f"{row[key]['control'][share]:5.1f} {row[key]['attack'][share]:6.1f}" for share in ("p50_ms", "p99_ms", "p999_ms")
            )
            print(
                f"  {row['attackers']:9}  {name:8}  {pairs}  {row[key]['p999_difference_ms']:10.1f}  {row['signals']:7}  {row['cpus']:4.2f}"
            )


def print_jitter(rows):
    print("Jitter buffer, whole call and (first 8 s)")
    print("  profile       added ms      p95 ms  concealed %  stretched %  PESQ (first 8 s) of unlimited buffer's")
    for row in rows:
        whole, first, quality = row["whole"], row["first_8_s"], row["quality"]
        pesq = (
            (f"{quality['pesq']:.2f} ({quality.get('pesq_first_8_s', float('nan')):.2f}) of {quality['pesq_unlimited']:.2f}")
            if "pesq" in quality
            else "–"
        )
        print(
            f"  {row['profile']:12} {whole['added_ms']:5.1f} ({first['added_ms']:5.1f})  {whole['added_p95_ms']:6.0f}  "
            f"{100 * whole['concealed_share']:11.2f}  {100 * whole['stretched_share']:11.2f}  {pesq}"
        )


def main():
    arguments = sys.argv[1:]
    as_json = "--json" in arguments
    directories = [argument for argument in arguments if argument != "--json"]
    if len(directories) != 1:
        sys.exit(__doc__)
    result = collect(pathlib.Path(directories[0]))
    if as_json:
        print(json.dumps(result, indent=1))
    else:
        print_table(result)
    sys.exit(1 if result["problems"] else 0)


if __name__ == "__main__":
    main()
