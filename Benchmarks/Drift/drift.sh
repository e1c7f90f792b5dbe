# shellcheck shell=bash
# Sound cards whose clocks differ, in simulated time: each direction's delay, measured with impulses, and its target.
# Expects: benchmarks, results, root, hours, say. Sets nothing.

section_drift() {
    local package=$benchmarks/Drift binaries clocks folder jobs=()
    say "drift: building"
    swift build -c release --package-path "$package" --product drift -Xswiftc -enable-testing >&2
    binaries=$(swift build -c release --package-path "$package" --show-bin-path)
    cc -O2 -shared -fPIC -DPIC -o "$results/libdrift_card.so" "$root/Tests/CScriptedCard/plugin/scripted_card.c" \
        -lasound -lm
    for clocks in "1500 1500" "-1500 -1500" "1500 -1500"; do
        folder=$results/drift${clocks/ /_}
        mkdir "$folder"
        cat >"$folder/asound.conf" <<END
</usr/share/alsa/alsa.conf>
pcm_type.scripted_card { lib "$results/libdrift_card.so" }
pcm.speaker { type scripted_card control "$folder/speaker" }
pcm.microphone { type scripted_card control "$folder/microphone" }
END
        say "drift: $hours simulated hours of a loudspeaker and a microphone off by $clocks ppm"
        # shellcheck disable=SC2086
        ALSA_CONFIG_PATH=$folder/asound.conf "$binaries/drift" "$folder" "$hours" $clocks >"$folder/answer" &
        jobs+=($!)
        # One for each core at a time.
        if ((${#jobs[@]} >= $(nproc))); then wait "${jobs[0]}" && jobs=("${jobs[@]:1}"); fi
    done
    wait "${jobs[@]}"
    cat "$results"/drift*/answer >"$results/drift.jsonl"
}
