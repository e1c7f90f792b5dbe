# shellcheck shell=bash
# Two Handsets on simulated sound cards (Tests/CScriptedCard) in real time, one of which calls the other through an
# exchange on this machine. Expects: benchmarks, results, root, handset, exchange_url, say, device.sh. Sets: call_pid.

call_pid=""

# Builds the cards, and the programs that simulate the air between them.
cards_build() {
    local program name
    for program in air room watch; do
        cc -O3 -ffast-math -Wall -Wextra -o "$results/$program" "$benchmarks/Cards/$program.c" -lm
    done
    cc -O2 -shared -fPIC -DPIC -o "$results/libscripted_card.so" "$root/Tests/CScriptedCard/plugin/scripted_card.c" \
        -lasound -lm
    {
        printf '</usr/share/alsa/alsa.conf>\npcm_type.scripted_card { lib "%s" }\n' "$results/libscripted_card.so"
        for name in here_mic here_speaker there_mic there_speaker; do
            printf 'pcm.%s { type scripted_card control "%s" hint { show on description "A card for tests" } }\n' \
                "$name" "$results/$name"
        done
    } >"$results/asound.conf"
}

# Writes a configuration for user $1 on cards $2: frames of $3 ms, the speakerphone on or off ($4), encoders of complexity
# $5; all else as the floors have it.
cards_configure() {
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
    bitrate_bps: 32000
    complexity: ${5:-5}
    fec: true
    expected_loss_percent: 10
END
}

# Starts a call of $3 s with frames of $1 ms, the speakerphone on or off ($2), on new cards. Its report is in
# call.json when it has ended; the other side's report is in device.log.
cards_call() {
    local attempt
    device_end "$device_pid"
    "$results/air" create "$results"/{here,there}_{mic,speaker}
    cards_configure echo there "$1" "$2" >"$results/there.yaml"
    cards_configure caller here "$1" "$2" >"$results/here.yaml"
    ALSA_CONFIG_PATH=$results/asound.conf device_run there.yaml --log-format json
    for ((attempt = 0; attempt < 100; attempt++)); do
        grep -q "Sound flows" "$results/device.log" && grep -q Ready "$results/device.log" && break
        sleep 0.1
    done
    ALSA_CONFIG_PATH=$results/asound.conf "$handset" call echo --config "$results/here.yaml" --playback here_speaker \
        --capture here_mic --duration "$3" --json >"$results/call.json" 2>"$results/call.log" &
    call_pid=$!
}

# Waits until the call has ended by itself.
cards_wait() {
    wait "$call_pid" || { say "the call failed:" && cat "$results/call.log" >&2 && exit 1; }
    call_pid=""
}

# The other side's report of the call: one JSON object.
cards_account() {
    local attempt
    for ((attempt = 0; attempt < 50; attempt++)); do
        grep "How it sounded" "$results/device.log" && return
        sleep 0.1
    done
    printf '{}\n'
}

# Ends the processes on the cards, and restarts the device of the other sections.
cards_end() {
    device_end "$call_pid"
    call_pid=""
    device_end "$device_pid"
    device_run
}
