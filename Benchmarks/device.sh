# shellcheck shell=bash
# The device under test and its exchange, for scripts/bench: `handset serve` and `handset run` as users run them, each
# a separate process, with temporary accounts. Expects: benchmarks, results, suite, say. Sets: device_pid, callers.

device_pid="" exchange_pid="" exchange_url="" callers=() handset=""

device_build() {
    # One build makes both: handset is a product of the package that the callers depend on.
    local package=$benchmarks/Callers binaries
    if [[ -n $handset_file ]]; then
        handset=$(realpath "$handset_file")
        callers=("$package/.build/release/callers")
        if [[ -x ${callers[0]} ]]; then return; fi
    fi
    swift build -c release --package-path "$package" --product callers --static-swift-stdlib >&2
    if [[ -n $handset_file ]]; then return; fi
    swift build -c release --package-path "$package" --product handset --static-swift-stdlib >&2
    binaries=$(swift build -c release --package-path "$package" --show-bin-path)
    handset=$binaries/handset
    callers=("$binaries/callers")
}

device_free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# Writes a media token for user $1, and prints its hash for the exchange.
device_token() {
    local token
    token=$(head -c 24 /dev/urandom | base64 | tr '+/' '-_')
    (umask 077 && printf '%s' "$token" >"$results/$1.token")
    printf '%s' "$token" | sha256sum | cut -d ' ' -f 1
}

device_configure() {
    local port=$1 name
    if [[ $suite == gcm ]]; then name=AEAD_AES_128_GCM; else name=AES_CM_128_HMAC_SHA1_80; fi
    cat >"$results/exchange.yaml" <<END
listen: 127.0.0.1:$port
apps:
  - key: bench
    secret_file: $results/app.secret
users:
  - id: echo
    public_ids: [echo@localhost]
    media_token_hashes: [$(device_token echo)]
  - id: caller
    public_ids: [caller@localhost]
    media_token_hashes: [$(device_token caller)]
END
    cat >"$results/device.yaml" <<END
account:
  server: $exchange_url
  app_key: bench
  app_secret_file: $results/app.secret
  media_token_file: $results/echo.token
answer:
  mode: auto
  max_calls: 1000
behaviour:
  source: echo
media:
  srtp_suites: [$name]
  opus:
    bitrate_bps: 32000
    complexity: 5
    fec: true
    expected_loss_percent: 10
    dtx: false
    frame_ms: 20
END
}

device_wait_for_port() {
    local attempt
    for ((attempt = 0; attempt < 100; attempt++)); do
        if (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; then return; fi
        sleep 0.1
    done
    say "the exchange does not listen:"
    cat "$results/exchange.log" >&2
    exit 1
}

device_start() {
    local port
    port=$(device_free_port)
    exchange_url=http://127.0.0.1:$port
    (umask 077 && printf 'bench' >"$results/app.secret")
    device_configure "$port"
    "$handset" serve --config "$results/exchange.yaml" 2>"$results/exchange.log" >&2 &
    exchange_pid=$!
    device_wait_for_port "$port"
    device_run
    callers+=(--server "$exchange_url" --to echo@localhost --token-file "$results/caller.token"
        --app-key bench --app-secret-file "$results/app.secret")
}

# Runs a device, with the configuration $1 if given, and further options. The callers wait until it is connected, so
# this function does not.
device_run() {
    "$handset" run --config "$results/${1:-device.yaml}" "${@:2}" 2>"$results/device.log" >&2 &
    device_pid=$!
}

device_end() {
    if [[ -n $1 ]] && kill -TERM "$1" 2>/dev/null; then wait "$1" || true; fi
}

device_restart() {
    device_end "$device_pid"
    device_run
}

device_stop() {
    device_end "$device_pid"
    device_end "$exchange_pid"
    device_pid="" exchange_pid=""
}
