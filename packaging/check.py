"""Checks what the package's tree says about its program: man pages, completions, licences and dependencies.

    python3 packaging/check.py TREE [DEPENDENCY...]

TREE is an unpacked package. Each command has a man page, and completions for bash, zsh and fish, with every option. Each DEPENDENCY, a
Swift package, and each library that the program loads is in the copyright file. Prints what is missing, and exits with 1.
"""

import gzip
import json
import pathlib
import re
import subprocess
import sys

TREE = pathlib.Path(sys.argv[1])
SHARE = TREE / "usr/share"
faults = []


def options(command):
    return [
        name["name"]
        for argument in command.get("arguments", [])
        if argument["shouldDisplay"]
        for name in argument.get("names", [])
        if name["kind"] == "long"
    ]


def block(text, opening):
    """The shell function of that name."""
    found = re.search(r"^" + re.escape(opening) + r" *\(\) \{\n(.*?)^\}", text, re.M | re.S)
    return found[1] if found else None


said = subprocess.run([TREE / "usr/bin/handset", "--experimental-dump-help"], capture_output=True, text=True, check=True).stdout
bash = (SHARE / "bash-completion/completions/handset").read_text()
zsh = (SHARE / "zsh/vendor-completions/_handset").read_text()
fish = (SHARE / "fish/vendor_completions.d/handset.fish").read_text()
count = 0


def look_at(command, parents):
    global count
    count += 1
    path = parents + [command["commandName"]]
    name = " ".join(path)
    page = SHARE / f"man/man1/{'-'.join(path)}.1.gz"
    manual = gzip.decompress(page.read_bytes()).decode() if page.exists() else None
    texts = {
        "man page": manual,
        "bash": block(bash, "_" + "_".join(path)),
        "zsh": block(zsh, "_" + "_".join(path)),
        "fish": "\n".join(line for line in fish.splitlines() if f'"{name}"' in line or f'"{name} ' in line) or None,
    }
    if manual and not re.search(r"^\.Sh EXIT STATUS\n\.Bl .*\n\.It 0$", manual, re.M):
        faults.append(f"man page: `{name}` has no exit codes")
    for what, text in texts.items():
        if text is None:
            faults.append(f"{what}: nothing for `{name}`")
            continue
        for option in options(command):
            form = {"man page": f"Fl -{option}", "fish": f"-l '{option}'"}.get(what, f"--{option}")
            if not re.search(re.escape(form) + r"(?![\w-])", text):
                faults.append(f"{what}: `{name}` lacks --{option}")
    for one in command.get("subcommands", []):
        if one["commandName"] != "help" and one["shouldDisplay"]:
            look_at(one, path)


look_at(json.loads(said)["command"], [])

keys = gzip.decompress((SHARE / "man/man5/handset.yaml.5.gz").read_bytes()).decode()
for section in re.findall(r"^### `(.+)`$", (SHARE / "doc/handset/configuration.md").read_text(), re.M):
    if f".Ss {section}\n" not in keys:
        faults.append(f"handset.yaml(5): no text about {section}")

copyright = (SHARE / "doc/handset/copyright").read_text()
for name in sys.argv[2:]:
    if not re.search(r"^" + re.escape(name) + r"\b", copyright, re.M | re.I):
        faults.append(f"copyright: no text about {name}")
needed = subprocess.run(["readelf", "--dynamic", TREE / "usr/bin/handset"], capture_output=True, text=True, check=True).stdout
for library in re.findall(r"Shared library: \[(.+)\]", needed):
    owner = subprocess.run(["dpkg-query", "--search", f"*/{library}"], capture_output=True, text=True).stdout
    packages = {line.split(":")[0] for line in owner.splitlines()}
    if not any(re.search(r"^" + re.escape(package) + r"\b", copyright, re.M) for package in packages):
        faults.append(f"copyright: no text about {library} ({', '.join(sorted(packages)) or 'no package has it'})")

if faults:
    sys.exit("\n".join(faults))
print(f"{count} commands have their man pages and completions; copyright has all that is linked", file=sys.stderr)
