# shellcheck shell=bash
# Mouth to ear: two Handsets on cards with periods of 10 ms, and `air`, which plays into one and listens to
# the other; and the same with two browsers. Expects: cards.sh, seconds, with_chromium, note. Sets nothing.

# Measures calls with frames of $1 ms, the speakerphone on or off ($2).
mouth_measure() {
    local answer
    cards_call "$1" "$2" $((seconds + 8))
    # The delays have settled a few seconds after the call was established.
    sleep 6
    answer=$("$results/air" measure "$seconds" "$results"/{here_mic,there_speaker} "$results"/{there_mic,here_speaker})
    cards_wait
    note mouth call "$1" "{\"processing\": $2, \"ways\": [${answer//$'\n'/, }], \"report\": $(cat "$results/call.json")}"
}

# The same cards and the same air, with a Chromium on each side.
mouth_chromium() {
    local python answer
    python=$(
        # shellcheck source=../../scripts/lib.sh
        source "$root/scripts/lib.sh"
        ensure_packages chromium chromium-driver python3-venv
        python_with selenium
    )
    device_end "$device_pid"
    device_pid=""
    "$results/air" create "$results"/{here,there}_{mic,speaker}
    answer=$("$python" "$benchmarks/Cards/chromium.py" "$handset" "$results" "$seconds")
    note mouth chromium 20 "$answer"
}

section_mouth() {
    local frame processing
    cards_build
    for frame in 20 10; do
        for processing in false true; do
            say "mouth: frames of $frame ms, speakerphone $processing"
            mouth_measure "$frame" "$processing"
        done
    done
    if $with_chromium; then
        say "mouth: two Chromiums"
        mouth_chromium
    fi
    cards_end
}
