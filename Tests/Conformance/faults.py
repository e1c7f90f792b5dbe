"""An exchange whose disk and clock a test makes fail while it runs (faults.c)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pathlib
import struct
import subprocess
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from exchange import Exchange

if TYPE_CHECKING:
    from conformance import Stage


class Spoilt(Exchange):
    """An exchange with a database, and with faults that are off at first."""

    def __init__(self, handset: str, name: str, **settings: Any) -> None:
        super().__init__(handset, name, database="exchange.sqlite", **settings)
        self.clock, self.flush, self.read_only = 0, 0, False
        library = self.path / "faults.so"
        source = pathlib.Path(__file__).with_name("faults.c")
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-Wall", "-o", library, source, "-ldl"], check=True)
        self.set()
        self.environment = os.environ | {"LD_PRELOAD": str(library), "FAULTS": str(self.path / "faults")}

    def set(self, **faults: float) -> None:
        """Changes faults: `clock`, by how many seconds it is off; `flush`, how many seconds one takes; `read_only`."""
        vars(self).update(faults)
        with open(self.path / "faults", "r+b" if (self.path / "faults").exists() else "wb") as file:
            file.write(struct.pack("=3q", round(self.clock * 1000), round(self.flush * 1000), self.read_only))

    async def logged(self, text: str, seconds: float = 15) -> None:
        """Waits until the log has this text."""
        async with asyncio.timeout(seconds):
            while text not in self.log.read_text():
                await asyncio.sleep(0.05)


@contextlib.asynccontextmanager
async def spoilt(stage: Stage, **settings: Any) -> AsyncIterator[Spoilt]:
    exchange = Spoilt(stage.handset, "spoilt", **settings)
    try:
        yield await exchange.start()
    finally:
        exchange.set(clock=0, flush=0, read_only=False)
        await exchange.stop()
        exchange.folder.cleanup()
