#!/usr/bin/env bash
# Measures how long after its link has come up a device is logged in that was started without a network.
#
#   link-up.sh HANDSET [RUNS]
#
# Device and exchange are joined by a pair of interfaces, the device in a network namespace of its own. The device starts while its
# interface is down, and waits a different time in each run, so that its next attempt would come at another moment; then the
# interface comes up with an address. The login is over TLS, with the exchange's own authority. Prints one line for each run; fails if one
# takes longer than a second. Needs root and iproute2.
set -euo pipefail

(($# >= 1)) || { sed -n '2,/^set /s/^# \{0,1\}//p' "$0" >&2; exit 2; }
handset=$(realpath "$1")
runs=${2:-6}
namespace=handset-link-$$
inside=hsl$((BASHPID % 100000))i
outside=hsl$((BASHPID % 100000))o
network=198.51.100
folder=$(mktemp -d)
exchange="" device=""

clean_up() {
    [[ -z $exchange ]] || kill "$exchange" 2>/dev/null || true
    [[ -z $device ]] || kill "$device" 2>/dev/null || true
    ip netns del "$namespace" 2>/dev/null || true
    ip link del "$outside" 2>/dev/null || true
    rm -rf "$folder"
}
trap clean_up EXIT

# Waits for a line with $2 in the log $1.
await() {
    local tries
    for ((tries = 0; tries < 4000; tries++)); do
        grep -q "$2" "$1" && return
        sleep 0.005
    done
    cat "$1" >&2
    exit 1
}

cd "$folder"
umask 077
printf 'app-secret' >app.secret
head -c 24 /dev/urandom | base64 -w 0 >device.token
cat >exchange.yaml <<END
listen: $network.1:8555
certificate:
  authority: own
  folder: $folder/authority
  names: [$network.1]
apps:
  - key: link
    secret_file: app.secret
users:
  - id: device
    media_token_hashes: [$(sha256sum device.token | cut -d ' ' -f 1)]
END
cat >device.yaml <<END
account:
  server: https://$network.1:8555
  app_key: link
  app_secret_file: app.secret
  media_token_file: device.token
  trust_roots: authority/root.pem
behaviour:
  source: echo
END

ip netns add "$namespace"
ip link add "$outside" type veth peer name "$inside"
ip link set "$inside" netns "$namespace"
ip addr add "$network.1/24" dev "$outside"
ip link set "$outside" up
ip netns exec "$namespace" ip link set lo up
"$handset" serve --config exchange.yaml >exchange.log 2>&1 </dev/null &
exchange=$!
await exchange.log Listening

slowest=0
for ((run = 1; run <= runs; run++)); do
    ip netns exec "$namespace" ip link set "$inside" down
    ip netns exec "$namespace" ip addr flush dev "$inside"
    : >device.log
    ip netns exec "$namespace" "$handset" run --config device.yaml >device.log 2>&1 </dev/null &
    device=$!
    sleep $((1 + 2 * run))
    ip netns exec "$namespace" ip addr add "$network.2/24" dev "$inside"
    began=$(date +%s%N)
    ip netns exec "$namespace" ip link set "$inside" up
    await device.log ' Ready'
    # By the log's clock, because this loop has a period of its own.
    ready=$(date -d "$(grep -m 1 ' Ready' device.log | cut -d ' ' -f 1)" +%s%N)
    took=$(((ready - began) / 1000000))
    printf 'run %d: logged in %d ms after the link came up\n' "$run" "$took"
    ((took <= slowest)) || slowest=$took
    kill "$device"
    wait "$device" || true
    device=""
done
if ((slowest > 1000)); then
    printf 'slower than a second: %d ms\n' "$slowest" >&2
    exit 1
fi
