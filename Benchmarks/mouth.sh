# shellcheck shell=bash
# Mouth to ear: two Handsets, each on sound cards of the tests' (Tests/CScriptedCard) with periods of 10 ms, call each
# other through an exchange on this machine, and `air` measures what it says into one and hears from the other. Expects:
# benchmarks, results, root, handset, exchange_url, seconds, say, note, device.sh. Sets nothing.

mouth_build() {
    cc -O2 -Wall -Wextra -o "$results/air" "$benchmarks/Mouth/air.c" -lm
    cc -O1 -shared -fPIC -DPIC -o "$results/libscripted_card.so" "$root/Tests/CScriptedCard/plugin/scripted_card.c" -lasound
    {
        printf '</usr/share/alsa/alsa.conf>\npcm_type.scripted_card { lib "%s" }\n' "$results/libscripted_card.so"
        local name
        for name in here_mic here_speaker there_mic there_speaker; do
            printf 'pcm.%s { type scripted_card control "%s" }\n' "$name" "$results/$name"
        done
    } >"$results/asound.conf"
}

# Writes a configuration for user $1 on cards $2: frames of $3 ms, the speakerphone on or off ($4).
mouth_configure() {
    cat <<END
account:
  server: $exchange_url
  app_key: bench
  app_secret_file: $results/app.secret
  media_token_file: $results/$1.token
behaviour:
  source: card
audio:
  playback: $2_speaker
  capture: $2_mic
  period_ms: 10
  echo_cancellation: $4
  noise_suppression: $4
  gain_control: $4
media:
  opus:
    frame_ms: $3
END
}

# Measures calls with frames of $1 ms, the speakerphone on or off ($2).
mouth_measure() {
    local frame=$1 processing=$2 report answer attempt
    "$results/air" create "$results"/{here,there}_{mic,speaker}
    mouth_configure echo there "$frame" "$processing" >"$results/there.yaml"
    mouth_configure caller here "$frame" "$processing" >"$results/here.yaml"
    device_end "$device_pid"
    ALSA_CONFIG_PATH=$results/asound.conf device_run there.yaml
    for ((attempt = 0; attempt < 100; attempt++)); do
        grep -q "Sound flows" "$results/device.log" && grep -q Ready "$results/device.log" && break
        sleep 0.1
    done
    ALSA_CONFIG_PATH=$results/asound.conf "$handset" call echo --config "$results/here.yaml" --playback here_speaker \
        --capture here_mic --duration $((seconds + 8)) --json >"$results/call.json" 2>"$results/call.log" &
    local call=$!
    # The delays have settled a few seconds after the call was established.
    sleep 6
    answer=$("$results/air" measure "$seconds" "$results"/{here_mic,there_speaker} "$results"/{there_mic,here_speaker})
    wait "$call" || { say "mouth: the call failed:" && cat "$results/call.log" >&2 && exit 1; }
    report=$(cat "$results/call.json")
    note mouth call "$frame" "{\"processing\": $processing, \"ways\": [${answer//$'\n'/, }], \"report\": $report}"
}

section_mouth() {
    local frame processing
    mouth_build
    for frame in 20 10; do
        for processing in false true; do
            say "mouth: frames of $frame ms, speakerphone $processing"
            mouth_measure "$frame" "$processing"
        done
    done
    device_end "$device_pid"
    device_run
}
