# shellcheck shell=bash
# Steps and jobs of a long run: each is timed, and a table of the run is kept, which scripts/ci-times prints. Sourced after lib.sh by
# a script that runs with `set -euo pipefail`. Sets: HANDSET_TIMES, HANDSET_RUN_BEGAN, jobs_folder.
#
#   begin_run FOLDER          starts the table, and ends what is left of the run's jobs when the script ends
#   step TITLE COMMAND        runs a command in the foreground; if it fails, the run ends
#   job NAME COMMAND          starts a command in the background; its output is in FOLDER/NAME.log
#   idle_job NAME COMMAND     the same, when nothing else wants the processor
#   await NAME                waits for a job, at the ordinary priority from now on; if it failed, shows its log and ends the run
#
# A COMMAND is one word: a text for `bash -euo pipefail`.

declare -A job_pids=()

begin_run() {
    jobs_folder=$1
    mkdir -p "$jobs_folder"
    rm -f "$jobs_folder"/*.{log,cpu}
    export HANDSET_TIMES=$jobs_folder/times.tsv
    HANDSET_RUN_BEGAN=$(date +%s)
    export HANDSET_RUN_BEGAN
    printf 'kind\tname\tat\tseconds\tcpu\twaited\tresult\n' >"$HANDSET_TIMES"
    trap end_jobs EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
}

# Seconds since the beginning of the run.
run_seconds() { echo $(($(date +%s) - HANDSET_RUN_BEGAN)); }

# The process and all that it started and that still belongs to it, children first.
descendants() {
    ps -e -o pid=,ppid= | awk -v root="$1" '
        { children[$2] = children[$2] " " $1 }
        function walk(process, count, list, index_) {
            count = split(children[process], list, " ")
            for (index_ = 1; index_ <= count; index_++) walk(list[index_])
            print process
        }
        END { walk(root) }'
}

end_tree() {
    local -a processes
    mapfile -t processes < <(descendants "$1")
    kill -TERM "${processes[@]}" 2>/dev/null || true
    for _ in $(seq 50); do
        kill -0 "${processes[@]}" 2>/dev/null || return 0
        sleep 0.1
    done
    kill -KILL "${processes[@]}" 2>/dev/null || true
}

end_jobs() {
    local name
    # A dpkg that is killed at work leaves its database broken: waits for the lock of ensure_packages.
    if ((${#job_pids[@]} > 0)); then
        exec 9<"$root"
        flock --timeout 900 9 || true
    fi
    for name in "${!job_pids[@]}"; do end_tree "${job_pids[$name]}"; done
}

# Gives a process that runs on idle time, and all that it started, the ordinary priority. Twice, because a process may start another
# meanwhile.
promote() {
    local process
    for _ in 1 2; do
        for process in $(descendants "$1"); do
            chrt --all-tasks --other --pid 0 "$process" 2>/dev/null || true
        done
    done
}

# Runs a command, and adds its line to the table: kind, name, command.
timed() {
    local -r kind=$1 name=$2 began=$(run_seconds) cpu=$jobs_folder/$BASHPID.cpu TIMEFORMAT='%U %S'
    local status=0 used result=ok
    exec 3>&2
    { time bash -euo pipefail -c "$3" 2>&3 3>&-; } 2>"$cpu" || status=$?
    exec 3>&-
    used=$(awk '{ printf "%.0f", $1 + $2 }' "$cpu")
    rm -f "$cpu"
    ((status == 0)) || result=FAILED
    printf '%s\t%s\t%s\t%s\t%s\t0\t%s\n' "$kind" "$name" "$began" $(($(run_seconds) - began)) "$used" "$result" >>"$HANDSET_TIMES"
    [[ $kind == job ]] || printf -- '-- %s: %s s, %s s of processor time\n' "$name" $(($(run_seconds) - began)) "$used"
    return "$status"
}

step() {
    printf '\n== %s (at %s s)\n' "$1" "$(run_seconds)"
    local status=0
    # As a job, so that a signal to the run ends it, too.
    (
        trap - EXIT INT TERM
        timed step "$1" "$2"
    ) </dev/null &
    job_pids[step]=$!
    wait "${job_pids[step]}" || status=$?
    unset 'job_pids[step]'
    ((status == 0)) || {
        printf '\n== FAILED: %s (exit code %s)\n' "$1" "$status"
        exit 1
    }
}

job() {
    printf '\n== in the background: %s, with the output in %s.log\n' "$1" "${jobs_folder#"$PWD"/}/$1"
    (
        trap - EXIT INT TERM
        timed job "$1" "$2"
    ) >"$jobs_folder/$1.log" 2>&1 </dev/null &
    job_pids[$1]=$!
}

idle_job() {
    printf '\n== on idle time: %s, with the output in %s.log\n' "$1" "${jobs_folder#"$PWD"/}/$1"
    (
        trap - EXIT INT TERM
        when_idle
        timed job "$1" "$2"
    ) >"$jobs_folder/$1.log" 2>&1 </dev/null &
    job_pids[$1]=$!
}

await() {
    local -r name=$1 began=$(run_seconds)
    local status=0 waited
    [[ -n ${job_pids[$name]-} ]] || return 0
    promote "${job_pids[$name]}"
    wait "${job_pids[$name]}" || status=$?
    unset "job_pids[$name]"
    waited=$(($(run_seconds) - began))
    printf '\n-- waited %s s for: %s\n' "$waited" "$name"
    printf 'wait\t%s\t%s\t%s\t0\t%s\tok\n' "$name" "$began" "$waited" "$waited" >>"$HANDSET_TIMES"
    ((status == 0)) || {
        cat "$jobs_folder/$name.log"
        printf '\n== FAILED: %s (exit code %s); its output is above\n' "$name" "$status"
        exit 1
    }
}
