# shellcheck shell=bash
# A long call between two Handsets on sound cards, the speakerphone on, while other work keeps every core busy. Expects:
# cards.sh, minutes, load_nice, note. Sets: xruns_loops.

xruns_loops=()

# As many busy loops as there are cores; they end by themselves if this script cannot end them.
xruns_load() {
    local core
    for ((core = 0; core < $(nproc); core++)); do
        nice -n "$load_nice" timeout $((minutes * 60 + 120)) bash -c 'while :; do :; done' &
        xruns_loops+=($!)
    done
}

xruns_unload() {
    local loop
    for loop in "${xruns_loops[@]}"; do
        kill "$loop" 2>/dev/null || true
        wait "$loop" || true
    done
    xruns_loops=()
}

# Time that the processors have idled, and all of it, in ticks.
xruns_idle() { awk '/^cpu / {print $5 + $6, $2 + $3 + $4 + $5 + $6 + $7 + $8 + $9}' /proc/stat; }

section_xruns() {
    local idle all idle_then all_then share answer watching
    cards_build
    say "xruns: a call of $minutes minutes, busy loops of nice $load_nice on every core"
    cards_call 20 true $((minutes * 60 + 8))
    xruns_load
    sleep 6
    "$results/watch" $((minutes * 60)) >"$results/watch.json" &
    watching=$!
    read -r idle all < <(xruns_idle)
    answer=$("$results/air" measure $((minutes * 60)) "$results"/{here_mic,there_speaker} \
        "$results"/{there_mic,here_speaker})
    read -r idle_then all_then < <(xruns_idle)
    wait "$watching"
    cards_wait
    share=$(awk "BEGIN {print ($idle_then - $idle) / ($all_then - $all)}")
    note xruns call "$minutes" "{\"nice\": $load_nice, \"idle_share\": $share, \"ways\": [${answer//$'\n'/, }], \
\"machine\": $(cat "$results/watch.json"), \"here\": $(cat "$results/call.json"), \"there\": $(cards_account)}"
    xruns_unload
    cards_end
}
