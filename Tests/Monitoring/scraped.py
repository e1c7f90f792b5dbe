"""A real Prometheus scrapes an exchange and a device, and takes every query of the alerts and of the dashboard.

    scraped.py HANDSET FOLDER

HANDSET is the program, FOLDER has alerts.yaml and grafana-dashboard.json. prometheus and promtool are on the PATH. The device, on ALSA's
null card, has one call, from `handset call`, and sends its events to a webhook.
promtool checks the metrics of both. Prometheus must take each query, and all metrics in it
must be there, except those of a trunk, because none runs.
"""

from __future__ import annotations

import http.server
import json
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

#: Until Prometheus has scraped both.
PATIENCE_SECONDS = 40


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def fetch(url: str) -> str:
    with urllib.request.urlopen(url, timeout=5) as answer:
        return answer.read().decode()


def eventually(what: str, ask):
    """The first result of `ask` that is true."""
    ends = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < ends:
        try:
            if result := ask():
                return result
        except OSError:
            pass
        time.sleep(0.2)
    sys.exit(f"{what} did not come about within {PATIENCE_SECONDS} s")


class Webhook(http.server.BaseHTTPRequestHandler):
    """Takes each event."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


class Site:
    """An exchange and a device, each with metrics."""

    def __init__(self, handset: str, folder: pathlib.Path) -> None:
        self.handset, self.folder = handset, folder
        self.server = f"127.0.0.1:{free_port()}"
        self.metrics = {name: f"127.0.0.1:{free_port()}" for name in ("exchange", "device")}
        self.webhook = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Webhook)
        threading.Thread(target=self.webhook.serve_forever, daemon=True).start()
        for name in ("alice.token", "caller.token", "app.secret", "webhook.secret"):
            secret = folder / name
            secret.touch(0o600)
            secret.write_text(f"{name} of a trial, long enough\n")
        (folder / "exchange.yaml").write_text(
            f"listen: {self.server}\n"
            "apps: [{ key: trial, secret_file: app.secret }]\n"
            "users: [{ id: alice, media_token_file: alice.token }, { id: caller, media_token_file: caller.token }]\n"
            f'monitoring: {{ listen: "{self.metrics["exchange"]}" }}\n'
        )
        account = (
            f'account: {{ server: "http://{self.server}", media_token_file: %s.token, app_key: trial, app_secret_file: app.secret }}\n'
        )
        (folder / "caller.yaml").write_text(account % "caller")
        (folder / "device.yaml").write_text(
            account % "alice"
            + 'behaviour: { source: card }\naudio: { playback: "null", capture: "null" }\n'
            + "control:\n  socket: control.sock\n  http: { socket: http.sock, history_folder: events }\n"
            + f'  webhooks: [{{ url: "http://127.0.0.1:{self.webhook.server_port}/", secret_file: webhook.secret }}]\n'
            + 'traces: { url: "http://127.0.0.1:9" }\n'
            + f'monitoring: {{ listen: "{self.metrics["device"]}" }}\n'
        )
        self.processes: list[subprocess.Popen] = []

    def start(self) -> None:
        for command in (["serve", "--config", "exchange.yaml"], ["run", "--config", "device.yaml"]):
            log = open(self.folder / f"{command[0]}.log", "w")
            self.processes.append(subprocess.Popen([self.handset, *command], cwd=self.folder, stdout=log, stderr=log))
            place = self.metrics["exchange" if command[0] == "serve" else "device"]
            eventually(f"{command[0]}'s /readyz", lambda place=place: fetch(f"http://{place}/readyz"))

    def call(self) -> None:
        command = [self.handset, "call", "alice", "--config", "caller.yaml", "--duration", "4"]
        subprocess.run(command, cwd=self.folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def stop(self) -> None:
        for process in self.processes:
            process.terminate()
            process.wait()
        self.webhook.shutdown()


def queries(folder: pathlib.Path) -> list[str]:
    """Those of the dashboard's panels, with what Grafana fills in."""
    dashboard = json.loads((folder / "grafana-dashboard.json").read_text())
    panels = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
    return [panel.replace("$__rate_interval", "1m").replace("$instance", ".*") for panel in panels]


class Prometheus:
    def __init__(self, folder: pathlib.Path, alerts: pathlib.Path, targets: dict[str, str]) -> None:
        jobs = "".join(
            f'  - job_name: handset-{name}\n    static_configs: [{{ targets: ["{place}"] }}]\n' for name, place in targets.items()
        )
        (folder / "prometheus.yaml").write_text(
            f"global: {{ scrape_interval: 1s, evaluation_interval: 1s }}\nrule_files: [{alerts.resolve()}]\nscrape_configs:\n{jobs}"
        )
        self.place = f"127.0.0.1:{free_port()}"
        log = open(folder / "prometheus.log", "w")
        self.process = subprocess.Popen(
            [
                "prometheus",
                f"--config.file={folder}/prometheus.yaml",
                f"--storage.tsdb.path={folder}/data",
                f"--web.listen-address={self.place}",
            ],
            stdout=log,
            stderr=log,
        )

    def ask(self, query: str) -> list:
        text = fetch(f"http://{self.place}/api/v1/query?{urllib.parse.urlencode({'query': query})}")
        return json.loads(text)["data"]["result"]

    def rules(self) -> list[dict]:
        groups = json.loads(fetch(f"http://{self.place}/api/v1/rules"))["data"]["groups"]
        return [rule for group in groups for rule in group["rules"]]

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()


def main() -> None:
    handset, rules = sys.argv[1], pathlib.Path(sys.argv[2])
    findings: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        site = Site(handset, folder)
        try:
            site.start()
            prometheus = Prometheus(folder, rules / "alerts.yaml", site.metrics)
            try:
                eventually("a scrape of both", lambda: len(prometheus.ask("up == 1")) == len(site.metrics))
                site.call()
                for what in ("sum(handset_calls_ended_total) > 0", "sum(handset_webhook_events_total) > 0"):
                    eventually(f"the call in {what}", lambda what=what: prometheus.ask(what))
                for part, place in site.metrics.items():
                    metrics = fetch(f"http://{place}/metrics")
                    check = subprocess.run(["promtool", "check", "metrics"], input=metrics, text=True, capture_output=True)
                    if check.returncode != 0:
                        findings.append(f"promtool finds in the metrics of the {part}: {check.stdout}{check.stderr}")
                known = set(json.loads(fetch(f"http://{prometheus.place}/api/v1/label/__name__/values"))["data"])
                alerts = eventually(
                    "a look at all alerts", lambda: all(rule["health"] != "unknown" for rule in prometheus.rules()) and prometheus.rules()
                )
                findings += [f"the alert {rule['name']}: {rule['lastError']}" for rule in alerts if rule["health"] != "ok"]
                asked = [rule["query"] for rule in alerts] + queries(rules)
                for query in asked:
                    try:
                        prometheus.ask(query)
                    except urllib.error.HTTPError as error:
                        findings.append(f"Prometheus refuses {query}: {error.read().decode()}")
                    unknown = {name for name in re.findall(r"handset_\w+", query) if name not in known and "trunk" not in name}
                    if unknown:
                        findings.append(f"no process shows {', '.join(sorted(unknown))}, of {query}")
            finally:
                prometheus.stop()
        finally:
            site.stop()
    for finding in findings:
        print(finding)
    print(f"{len(asked)} queries were asked; {len(findings) or 'no'} finding" + "s" * (len(findings) != 1))
    sys.exit(bool(findings))


main()
