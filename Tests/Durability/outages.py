"""What may happen to a database of PostgreSQL, to its server and to the way there, under the load of torture.py.

    outages.py HANDSET [OUTAGE …] [--rounds N] [--seed N] [--folder PATH] [--broken no-fence|unlogged]

Two exchanges are on one database; one that ends is started again, as systemd does. In each round the outage begins, lasts, and ends;
then an exchange must serve. What clients asked for and heard is judged as by torture.py and history.py. Without names all outages
are tried. With --broken the database is made to break a promise, and the run passes only if the judge finds that.

Needs root: it has a network of its own (unshare), where packets are dropped (nft), and mounts a small disk.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import torture

PROGRAMS = "/usr/lib/postgresql/15/bin"
PORT = 5432
LEASE = 1


def run(*command, check=True, **more):
    return subprocess.run([str(word) for word in command], check=check, capture_output=True, text=True, **more)


class Stuck(Exception):
    """No exchange serves."""


class Unheard(torture.Faults):
    """Faults that are expected."""

    def check(self, holds, text):
        pass


class Server:
    """A server of PostgreSQL, on all addresses of this network."""

    def __init__(self, folder, port=PORT, settings=""):
        self.folder, self.port, self.settings = folder, port, settings
        os.makedirs(folder, exist_ok=True)
        shutil.chown(folder, "postgres")

    def run(self, program, *arguments, check=True):
        command = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", f"{PROGRAMS}/{program}", *map(str, arguments)]
        return subprocess.run(command, check=check, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=self.folder)

    def make(self):
        self.run("initdb", "--encoding=UTF8", "--locale=C.UTF-8", "-U", "handset", "-A", "trust", "-D", "data")
        with open(f"{self.folder}/data/pg_hba.conf", "a", encoding="utf-8") as file:
            file.write("host all all 127.0.0.0/8 trust\nhost replication all 127.0.0.0/8 trust\n")
        return self

    def copy(self, other):
        """Becomes a replica of another."""
        self.run("pg_basebackup", "-h", "127.0.0.1", "-p", other.port, "-U", "handset", "-R", "-X", "stream", "-D", "data")
        return self

    def start(self):
        settings = f"-p {self.port} -k {self.folder} -c listen_addresses=* -c max_connections=60 -c lc_messages=C {self.settings}"
        self.run("pg_ctl", "-D", "data", "-l", "server.log", "-w", "-o", settings, "start")
        return self

    def stop(self, mode="fast"):
        self.run("pg_ctl", "-D", "data", "-m", mode, "-w", "stop", check=False)

    def kill(self):
        """As a machine that loses its power: no process of it does anything more."""
        with open(f"{self.folder}/data/postmaster.pid", encoding="utf-8") as file:
            postmaster = int(file.readline())
        children = run("pgrep", "-P", postmaster, check=False).stdout.split()
        for process in [postmaster, *map(int, children)]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        while os.path.exists(f"/proc/{postmaster}"):
            time.sleep(0.01)

    def is_up(self):
        return self.run("pg_isready", "-q", "-h", "127.0.0.1", "-p", self.port, check=False).returncode == 0

    def sql(self, *texts, database="handset", check=True):
        command = [f"{PROGRAMS}/psql", "-h", self.folder, "-p", str(self.port), "-U", "handset", "-d", database, "-qAt"]
        for text in texts:
            command += ["-c", text]
        return run(*command, check=check).stdout.strip()


class Node:
    """One of the exchanges: its processes, one after the other."""

    def __init__(self, cluster, number):
        self.cluster, self.number = cluster, number
        self.environment = dict(os.environ)
        self.address = f"127.0.0.{number + 2}"  # By which it reaches the database.
        self.process = self.port = None
        self.is_stopped = False

    def configure(self, ports):
        folder = self.cluster.folder
        store = f"postgresql://handset@{','.join(f'{self.address}:{port}' for port in ports)}/handset"
        with open(f"{folder}/exchange.yaml", encoding="utf-8") as file:
            lines = [line for line in file.read().splitlines() if not line.startswith("database:")]
        lines[1:1] = [f"store: {store}", "store_sslmode: disable", f"store_lease_seconds: {LEASE}", "store_replication: none"]
        self.configuration = f"{folder}/exchange-{self.number}.yaml"
        with open(self.configuration, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")

    def spawn(self):
        self.port = torture.free_port()
        self.process = subprocess.Popen(
            [self.cluster.handset, "serve", "--config", self.configuration, "--listen", f"127.0.0.1:{self.port}"],
            stdout=self.cluster.log,
            stderr=self.cluster.log,
            env=self.environment,
        )


class Cluster:
    """Two exchanges and their database, in the place of torture.py's one process."""

    loses_database = True

    def __init__(self, handset, folder, outage):
        self.handset, self.folder, self.outage = handset, folder, outage
        self.log = open(f"{folder}/serve.log", "ab")
        self.nodes = [Node(self, 0), Node(self, 1)]
        self.server = outage.make_server(folder)
        self.expired, self.endings, self.takeovers = set(), [], 0
        self.past = set()  # Ports of owners that another one has followed.
        self.lock = threading.Lock()
        self.serving = self.served = None  # Which one, and at which port.
        self.rounds = 0
        self.slowest_start = 0.0
        self.is_over = False

    def boot(self):
        for node in self.nodes:
            node.configure(self.outage.ports)
        self.outage.prepare(self)
        for node in self.nodes:
            node.spawn()
        for node in self.nodes:
            threading.Thread(target=self.watch, args=[node], daemon=True).start()
        self.wait()

    @property
    def port(self):
        return self.served or random.choice(self.nodes).port

    def watch(self, node):
        """Finds out whether it serves, and starts it again when it has ended. One that is cut off answers late."""
        while not self.is_over:
            code, port = node.process.poll(), node.port
            if code is not None and not self.is_over:
                self.endings.append(code)
                node.spawn()
            elif not node.is_stopped and torture.answer(port) not in (None, 503):
                self.note_serving(node, port)
            time.sleep(0.05)

    def note_serving(self, node, port):
        with self.lock:
            if port in self.past or port == self.served:
                return
            before, self.serving, self.served = self.served, node, port
        if before:
            self.takeovers += 1
            self.past.add(before)
            # What was on its way has come by then.
            threading.Timer(0.5, self.expired.add, [before]).start()

    def wait(self, port=None):
        """Until an exchange serves, and another one than that at this port."""
        began = time.monotonic()
        while True:
            served = self.served
            if served not in (None, port) and torture.answer(served) not in (None, 503):
                self.slowest_start = max(self.slowest_start, time.monotonic() - began)
                return
            time.sleep(0.02)
            if time.monotonic() - began > 30:
                raise Stuck(f"no other exchange serves; see {self.log.name}")

    def replace(self, owner, end):
        """Ends an owner in some way, and waits until another process serves."""
        port = owner.port
        end()
        self.wait(port)

    def kill(self):
        pass

    def start(self):
        """One round."""
        self.rounds += 1
        self.outage.round(self)
        self.wait()

    def end(self):
        self.is_over = True
        for node in self.nodes:
            if node.process and node.process.poll() is None:
                node.process.kill()
                node.process.wait()
        for server in self.outage.servers:
            server.stop("immediate")
        self.outage.clean()


class Outage:
    """What happens in a round, and how its server is made."""

    name = ""
    ports: tuple[int, ...] = (PORT,)
    #: How exchanges may end by themselves: without their database at the start, and because another one owns it.
    endings = {11, 19}
    #: Whether what was acknowledged may be lost.
    is_lossy = False
    rounds = 3

    def __init__(self):
        self.servers = []

    def make_server(self, folder):
        server = Server(f"{folder}/server").make().start()
        self.servers.append(server)
        server.sql("CREATE DATABASE handset", database="postgres")
        return server

    def prepare(self, cluster):
        pass

    def round(self, cluster):
        raise NotImplementedError

    def clean(self):
        pass

    def expect(self, cluster, faults):
        """What must have happened beside the load."""


class Killed(Outage):
    name = "killed"

    def round(self, cluster):
        owner = cluster.serving
        cluster.replace(owner, owner.process.kill)


class Drained(Outage):
    """The owner ends in order."""

    name = "drained"
    endings = {0, 11, 19}

    def round(self, cluster):
        owner = cluster.serving
        cluster.replace(owner, owner.process.terminate)
        time.sleep(2)  # Until it is a standby again.


class Stopped(Outage):
    """The owner is stopped for longer than its lease."""

    name = "stopped"

    def round(self, cluster):
        owner = cluster.serving
        owner.is_stopped = True
        cluster.replace(owner, lambda: owner.process.send_signal(signal.SIGSTOP))
        time.sleep(0.7)
        owner.process.send_signal(signal.SIGCONT)
        owner.is_stopped = False
        time.sleep(0.5)


class Clocks(Killed):
    """The exchanges' clocks differ by an hour; their owners are killed."""

    name = "clocks"

    def prepare(self, cluster):
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../Conformance/faults.c")
        run("cc", "-shared", "-fPIC", "-O1", "-o", f"{cluster.folder}/faults.so", source, "-ldl")
        with open(f"{cluster.folder}/faults", "wb") as file:
            file.write((3_600_000).to_bytes(8, "little") + bytes(4096))
        cluster.nodes[1].environment |= {"LD_PRELOAD": f"{cluster.folder}/faults.so", "FAULTS": f"{cluster.folder}/faults"}


class ServerKilled(Outage):
    """The server dies, and starts again."""

    name = "server-killed"

    def round(self, cluster):
        cluster.server.kill()
        time.sleep(random.uniform(0, 1.5))
        cluster.server.start()


class SessionsEnded(Outage):
    """The server ends all sessions."""

    name = "sessions-ended"

    def round(self, cluster):
        cluster.server.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'handset'")
        time.sleep(1.5)


class IdleEnded(Outage):
    """The server ends sessions that are idle for a tenth of a second."""

    name = "idle-ended"

    def round(self, cluster):
        cluster.server.sql("ALTER SYSTEM SET idle_session_timeout = '100ms'", "SELECT pg_reload_conf()")
        time.sleep(2)
        cluster.server.sql("ALTER SYSTEM RESET idle_session_timeout", "SELECT pg_reload_conf()")


class Partition(Outage):
    """The owner and the database do not reach each other."""

    name = "partition"
    rules: tuple[str, ...] = ("ip daddr {0} tcp dport {1} drop", "ip saddr {0} tcp sport {1} drop")

    def prepare(self, cluster):
        run("nft", "add table ip outage; add chain ip outage output { type filter hook output priority 0; }")

    def round(self, cluster):
        owner = cluster.serving
        cluster.replace(owner, lambda: self.cut(owner))
        time.sleep(1)
        run("nft", "flush", "chain", "ip", "outage", "output")

    def cut(self, owner):
        for rule in self.rules:
            run("nft", "add", "rule", "ip", "outage", "output", *rule.format(owner.address, PORT).split())

    def clean(self):
        run("nft", "delete", "table", "ip", "outage", check=False)


class PartitionOut(Partition):
    """What the owner sends does not reach the database."""

    name = "partition-out"
    rules: tuple[str, ...] = Partition.rules[:1]


class PartitionIn(Partition):
    """What the database answers does not reach the owner."""

    name = "partition-in"
    rules: tuple[str, ...] = Partition.rules[1:]


class Slow(Outage):
    """What goes to and from the database takes 100 ms longer, each way; every second round the owner is killed meanwhile."""

    name = "slow"

    def make_server(self, folder):
        self.delay = 0.0
        server = Server(f"{folder}/server", PORT + 10).make().start()
        self.servers.append(server)
        server.sql("CREATE DATABASE handset", database="postgres")
        threading.Thread(target=lambda: asyncio.run(self.relay(server.port)), daemon=True).start()
        return server

    async def relay(self, port):
        async def connected(reader, writer):
            try:
                far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                return writer.close()
            await asyncio.gather(self.copy(reader, far_writer), self.copy(far_reader, writer))

        async with await asyncio.start_server(connected, "0.0.0.0", PORT) as listener:
            await listener.serve_forever()

    async def copy(self, reader, writer):
        """Passes on what comes, in its order, each piece later by the delay; a delay of its own is none for others."""
        pieces: asyncio.Queue = asyncio.Queue()

        async def send():
            while True:
                due, piece = await pieces.get()
                await asyncio.sleep(due - time.monotonic())
                if not piece:
                    return writer.close()
                writer.write(piece)

        sending = asyncio.ensure_future(send())
        piece = b"-"
        while piece:
            try:
                piece = await reader.read(1 << 16)
            except OSError:
                piece = b""
            pieces.put_nowait((time.monotonic() + self.delay, piece))
        await sending

    def round(self, cluster):
        self.delay = 0.1
        time.sleep(4)
        if cluster.rounds % 2:
            owner = cluster.serving
            cluster.replace(owner, owner.process.kill)
        self.delay = 0.0


class Full(Outage):
    """The server's disk is full."""

    name = "full"

    def make_server(self, folder):
        self.disk = f"{folder}/disk"
        os.makedirs(self.disk)
        run("mount", "-t", "tmpfs", "-o", "size=200m,mode=755", "handset-full", self.disk)
        server = Server(f"{self.disk}/server", settings="-c min_wal_size=32MB -c max_wal_size=32MB").make().start()
        self.servers.append(server)
        server.sql("CREATE DATABASE handset", database="postgres")
        return server

    def round(self, cluster):
        filler = f"{self.disk}/filler"
        with contextlib.suppress(OSError), open(filler, "wb", buffering=0) as file:
            while True:
                file.write(bytes(1 << 16))
        with contextlib.suppress(OSError), open(filler, "ab", buffering=0) as file:
            while True:
                file.write(bytes(512))
        time.sleep(5)
        os.remove(filler)
        # It gives up if it cannot write its log, and then needs to be started.
        time.sleep(1)
        if not cluster.server.is_up():
            cluster.server.stop("immediate")
            cluster.server.start()

    def clean(self):
        run("umount", "-l", self.disk, check=False)


class Promoted(Outage):
    """A replica with synchronous replication takes the place of its primary."""

    name = "promoted"
    ports = (PORT, PORT + 1)
    rounds = 1
    settings = "-c synchronous_standby_names=*"

    def make_server(self, folder):
        primary = super().make_server(folder)
        replica = Server(f"{folder}/replica", PORT + 1).copy(primary).start()
        self.servers.append(replica)
        if self.settings:
            primary.sql("ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()")
        return primary

    def round(self, cluster):
        primary, replica = self.servers
        primary.kill()
        replica.run("pg_ctl", "-D", "data", "-w", "promote")
        # Otherwise it would wait for a replica of its own.
        replica.sql("ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()")
        time.sleep(1)


class PromotedBehind(Promoted):
    """A replica that has not received the last takeover takes the place of its primary: its lease is an older one."""

    name = "promoted-behind"
    settings = ""
    is_lossy = True

    def round(self, cluster):
        primary, replica = self.servers
        replica.sql("ALTER SYSTEM SET primary_conninfo = ''", "SELECT pg_reload_conf()")
        time.sleep(0.5)
        owner = cluster.serving
        cluster.replace(owner, owner.process.kill)
        time.sleep(1)
        self.epochs = [int(primary.sql("SELECT epoch FROM handset.lease")), int(replica.sql("SELECT epoch FROM handset.lease"))]
        primary.kill()
        replica.run("pg_ctl", "-D", "data", "-w", "promote")
        time.sleep(1)
        cluster.wait()
        generation, epoch = replica.sql("SELECT generation, epoch FROM handset.lease").split("|")
        self.after = (generation, int(epoch))

    def expect(self, cluster, faults):
        faults.check(self.epochs[1] < self.epochs[0], f"the replica was not behind: {self.epochs}")
        faults.check(self.after[0] == "00000002", f"the lease is of timeline {self.after[0]} after the promotion")


OUTAGES = [
    Killed,
    Drained,
    Stopped,
    Clocks,
    ServerKilled,
    SessionsEnded,
    IdleEnded,
    Partition,
    PartitionOut,
    PartitionIn,
    Slow,
    Full,
    Promoted,
    PromotedBehind,
]

#: What makes the database break a promise, and in which outage that shows.
BROKEN = {
    "no-fence": (
        Stopped,
        """CREATE OR REPLACE FUNCTION handset.confirm(owned_generation text, owned_epoch bigint, duration_ms bigint) RETURNS bigint
        LANGUAGE sql AS $$ SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint $$""",
    ),
    # After the death of the server such tables are empty: what was acknowledged was not committed.
    "unlogged": (ServerKilled, "ALTER TABLE handset.invites SET UNLOGGED; ALTER TABLE handset.events SET UNLOGGED"),
}


def attempt(handset, outage, rounds, folder, breakage=None):
    """Tries one outage, and returns what was found."""
    pairs = 4
    # A client may be connected to an exchange that is cut off, and hears nothing of it meanwhile.
    torture.LATE = 30.0
    os.chmod(folder, 0o755)
    torture.write_configuration(folder, pairs, None)
    cluster = Cluster(handset, folder, outage)
    world = torture.World(cluster, pairs)
    if outage.is_lossy:
        torture.LOST, world.faults = 5.0, Unheard()
    else:
        torture.LOST = 60.0
    try:
        cluster.boot()
        if breakage:
            cluster.server.sql(breakage)
        asyncio.run(world.run(rounds))
        if outage.is_lossy:
            # What was lost by what cannot be helped is no fault.
            world.faults = torture.Faults()
            for fault in world.history.late_faults():
                world.faults.check(False, fault)
        else:
            command = [handset, "calls", "--config", cluster.nodes[0].configuration, "--json", "--limit", "1000000"]
            output = run(*command).stdout
            world.judge([json.loads(line) for line in output.splitlines()])
        outage.expect(cluster, world.faults)
    except Stuck as error:
        world.faults.check(False, str(error))
        for fault in world.history.faults(is_over=False):
            world.faults.check(False, fault)
    finally:
        cluster.end()
    strange = set(cluster.endings) - outage.endings - {-signal.SIGKILL}
    world.faults.check(not strange, f"exchanges ended with {sorted(strange)}")
    invites = sum(len(inviter.sent) for inviter in world.inviters)
    world.faults.check(invites > 0, "there was no load")
    print(
        f"{outage.name}: {rounds} rounds, {invites} invites, {len(world.history.operations)} requests, {cluster.takeovers} takeovers, "
        f"an exchange served after {cluster.slowest_start:.1f} s at most, endings {sorted(cluster.endings)}, "
        f"{len(world.faults.found)} faults",
        flush=True,
    )
    return world.faults.found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("handset")
    parser.add_argument("outages", nargs="*", metavar="OUTAGE", help=", ".join(outage.name for outage in OUTAGES))
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--folder", default=None)
    parser.add_argument("--broken", choices=sorted(BROKEN))
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    unknown = set(options.outages) - {outage.name for outage in OUTAGES}
    if unknown:
        parser.error(f"no such outage: {', '.join(sorted(unknown))}")
    if not options.inside:
        os.execvp("unshare", ["unshare", "--net", "--mount", "--propagation", "private", sys.executable, *sys.argv, "--inside"])
    run("ip", "link", "set", "lo", "up")
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1 << 32)
    random.seed(seed)
    print(f"seed {seed}", flush=True)
    handset = os.path.abspath(options.handset)
    chosen = [BROKEN[options.broken][0]] if options.broken else OUTAGES
    if options.outages:
        chosen = [outage for outage in OUTAGES if outage.name in options.outages]
    failed = []
    for outage in chosen:
        folder = tempfile.mkdtemp(prefix=f"handset-{outage.name}-", dir=options.folder)
        breakage = BROKEN[options.broken][1] if options.broken else None
        found = attempt(handset, outage(), options.rounds or outage.rounds, folder, breakage)
        if bool(found) != bool(breakage):
            failed.append(outage.name)
            print(f"kept: {folder}")
        else:
            shutil.rmtree(folder)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
