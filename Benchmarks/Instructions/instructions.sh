# shellcheck shell=bash
# Instructions for 20 ms of a call, counted by valgrind's callgrind in a real `handset run`. All processes run with a clock
# that is slower than the machine's, so that an instrumented device keeps up and behaves as usual.
# Expects: benchmarks, results, root, handset, callers, complexities, slowness, say, note, device.sh, cards.sh. Sets nothing.

# Seconds of the call that are counted.
instructions_seconds=6

# A device with configuration $1 under callgrind, which counts nothing yet.
instructions_device() {
    device_end "$device_pid"
    valgrind --quiet --tool=callgrind --instr-atstart=no --callgrind-out-file="$results/callgrind.out" \
        "$results/handset" run --config "$results/$1" --log-format json 2>"$results/device.log" >&2 &
    device_pid=$!
    local attempt
    for ((attempt = 0; attempt < 100; attempt++)); do
        if grep -q '"Ready"' "$results/device.log"; then return; fi
        sleep 0.1
    done
    say "the device under valgrind does not get ready:"
    cat "$results/device.log" >&2
    exit 1
}

# Counts for a while, ends the device, and records the counts as kind $1, complexity $2.
instructions_count() {
    callgrind_control --instr=on "$device_pid" >&2
    sleep "$instructions_seconds"
    callgrind_control --instr=off "$device_pid" >&2
    device_end "$device_pid"
    device_pid=""
    note instructions "$1" "$2" "$(python3 "$benchmarks/Instructions/count.py" "$results/callgrind.out" "$instructions_seconds")"
}

# A call that is echoed, with encoders of complexity $1.
instructions_echo() {
    sed "s/complexity: 5/complexity: $1/" "$results/device.yaml" >"$results/instructions.yaml"
    instructions_device instructions.yaml
    coproc CALLERS { exec "${callers[@]}" --calls 1 --suite "$suite"; }
    local placing=$CALLERS_PID input=${CALLERS[1]} lines
    # Background processes do not inherit a coprocess's descriptors.
    exec {lines}<&"${CALLERS[0]}"
    "$floors/loadgen" --measure "$device_pid" --seconds $((instructions_seconds + 4)) <&"$lines" >"$results/loadgen.json" &
    local sending=$!
    exec {lines}<&-
    sleep 5
    instructions_count echo "$1"
    # It measures a process that has ended by now.
    kill "$sending" 2>/dev/null || true
    wait "$sending" || true
    exec {input}>&-
    wait "$placing" || true
}

# A call on a sound card with all parts of the speakerphone, in a room with an echo: encoders of complexity $1, echoes of up
# to $2 ms.
instructions_speakerphone() {
    device_end "$device_pid"
    device_pid=""
    "$results/air" create "$results"/{here,there}_{mic,speaker}
    cards_configure caller here 20 true >"$results/here.yaml"
    cards_configure echo there 20 true "$1" | sed "s/^  period_ms.*/&\n  echo_tail_ms: $2/" >"$results/instructions.yaml"
    export ALSA_CONFIG_PATH=$results/asound.conf
    instructions_device instructions.yaml
    "$handset" call echo --config "$results/here.yaml" --playback here_speaker --capture here_mic \
        --duration $((instructions_seconds + 30)) --json >"$results/call.json" 2>"$results/call.log" &
    call_pid=$!
    unset ALSA_CONFIG_PATH
    "$results/room" $((instructions_seconds + 20)) "$speech" "$device_pid" "$results"/there_{mic,speaker} "$call_pid" \
        "$results"/here_{mic,speaker} >"$results/room.json" 2>/dev/null &
    local room=$!
    sleep 10
    instructions_count "speakerphone, $2 ms" "$1"
    kill "$room" 2>/dev/null || true
    wait "$room" || true
    device_end "$call_pid"
    call_pid=""
}

section_instructions() {
    local complexity tail
    (source "$root/scripts/lib.sh" && ensure_packages valgrind)
    cards_build
    # Valgrind reads symbols, but not all that there is for debuggers.
    strip --strip-debug -o "$results/handset" "$handset"
    cc -O2 -shared -fPIC -Wall -Wextra -o "$results/libslow.so" "$benchmarks/Instructions/slow.c"
    device_stop
    export SLOWNESS=$slowness LD_PRELOAD=$results/libslow.so
    device_start
    for complexity in $complexities; do
        say "instructions: complexity $complexity, $slowness times slower than time"
        instructions_echo "$complexity"
    done
    # What it adds does not depend on the encoder.
    for tail in 128 64; do
        say "instructions: speakerphone, echoes of up to $tail ms"
        instructions_speakerphone 3 "$tail"
    done
    device_stop
    unset SLOWNESS LD_PRELOAD
    device_start
}
