# shellcheck shell=bash
# CPU time of a call on sound cards with all parts of the speakerphone, compared with the same call without, and the floor;
# and the reduction of the room's echo. Expects: cards.sh, seconds, rounds, speech, floors, note, measure_paced. Sets nothing.

section_speakerphone() {
    local round processing answer
    cards_build
    for ((round = 1; round <= rounds; round++)); do
        say "speakerphone: round $round of $rounds"
        measure_paced 1 speakerphone
        for processing in false true; do
            cards_call 20 "$processing" $((seconds + 10))
            sleep 2
            answer=$("$results/room" "$seconds" "$speech" "$call_pid" "$results"/here_{mic,speaker} "$device_pid" \
                "$results"/there_{mic,speaker})
            cards_wait
            note speakerphone call 1 \
                "{\"processing\": $processing, \"room\": $answer, \"report\": $(cat "$results/call.json")}"
        done
    done
    cards_end
}
