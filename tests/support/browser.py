"""A real browser (Chromium, without a window) through its DevTools protocol: nothing to install but the browser itself.

https://chromedevtools.github.io/devtools-protocol/
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from websockets.sync.client import connect

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gateway-tests" / "chromium"
_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--disable-extensions", "--disable-default-apps",
    "--no-proxy-server", "--remote-debugging-port=0",
)  # fmt: skip
_SHOTS = Path(__file__).resolve().parents[2] / ".local" / "screenshots"
_PATIENCE = 60  # seconds for whatever the page should do


class NoBrowser(Exception):
    """There is no Chromium here, and none could be installed; the message says what was tried."""


def chromium() -> tuple[str, dict[str, str]]:
    """The browser's program and the environment that it needs: from the PATH, by apt as root, or unpacked into a folder of ours.

    Raises NoBrowser.
    """
    tried: list[str] = []
    _CACHE.mkdir(parents=True, exist_ok=True)
    # Test processes run side by side, and apt lets one in at a time: the others wait, and find it installed.
    with (_CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for attempt in (_on_path, _installed, _unpacked):
            try:
                return attempt()
            except (OSError, subprocess.CalledProcessError, NoBrowser) as error:
                said = getattr(error, "stderr", None) or str(error)
                tried.append(f"{attempt.__name__.strip('_')}: {str(said).strip()[-500:]}")
    raise NoBrowser("Chromium is needed and could not be installed. " + " | ".join(tried))


def _on_path() -> tuple[str, dict[str, str]]:
    for name in _NAMES:
        found = shutil.which(name)
        if found is not None:
            return found, {}
    raise NoBrowser(f"none of {', '.join(_NAMES)} is on the PATH")


def _installed() -> tuple[str, dict[str, str]]:
    if os.geteuid() != 0:
        raise NoBrowser("not root, so apt-get install is not tried")
    install = ["apt-get", "-o", "DPkg::Lock::Timeout=300", "install", "-y", "--no-install-recommends", "chromium"]
    try:
        _run(install)
    except subprocess.CalledProcessError:  # package lists that are missing or old
        _run(["apt-get", "update"])
        _run(install)
    return _on_path()


def _unpacked() -> tuple[str, dict[str, str]]:
    """Chromium and every library that this machine lacks, from Debian's packages, without being root."""
    root = _CACHE / "root"
    program = root / "usr/lib/chromium/chromium"
    if not program.exists():
        packages = _CACHE / "packages"
        packages.mkdir(parents=True, exist_ok=True)
        listed = _run(
            ["apt-cache", "depends", "--recurse", "--no-recommends", "--no-suggests", "--no-conflicts", "--no-breaks",
             "--no-replaces", "--no-enhances", "chromium"]
        )  # fmt: skip
        wanted = sorted({line for line in listed.splitlines() if re.fullmatch(r"[a-z0-9][a-z0-9.+-]+", line)})
        known = _run(["dpkg-query", "-f", "${Package} ${db:Status-Status}\n", "-W"])
        present = {line.split()[0] for line in known.splitlines() if line.endswith(" installed")}
        _run(["apt-get", "download", *[name for name in wanted if name not in present]], cwd=packages)
        fresh = _CACHE / f"root-{os.getpid()}"
        for file in packages.glob("*.deb"):
            _run(["dpkg", "-x", str(file), str(fresh)])
        fresh.rename(root)
    libraries = [root / "usr/lib/chromium", *(root / "usr/lib").glob("*-linux-gnu"), *(root / "lib").glob("*-linux-gnu")]
    return str(program), {"LD_LIBRARY_PATH": ":".join(str(folder) for folder in libraries)}


def _run(command: list[str], cwd: Path | None = None) -> str:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(command, cwd=cwd, env=environment, check=True, capture_output=True, text=True, timeout=600)
    return done.stdout


class Browser:
    """One browser with one page. `requests` are all URLs it asked for, `complaints` what it wrote to its console as an error."""

    def __init__(self, folder: Path, width: int = 1280, height: int = 900) -> None:
        program, environment = chromium()
        profile = folder / "profile"
        self._log = (folder / "chromium.log").open("wb")
        self._process = subprocess.Popen(
            [program, *_FLAGS, f"--window-size={width},{height}", f"--user-data-dir={profile}", "about:blank"],
            env={**os.environ, **environment},
            stdout=self._log,
            stderr=self._log,
        )
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self._count = 0
        self._socket = connect(self._page_address(profile), max_size=None, proxy=None)
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.tell(f"{domain}.enable")
        self.size(width, height)

    def _page_address(self, profile: Path) -> str:
        """The DevTools address of the first page. Chromium writes its port into a file once it listens."""
        import http.client

        told = profile / "DevToolsActivePort"
        deadline = time.monotonic() + _PATIENCE
        while time.monotonic() < deadline:
            assert self._process.poll() is None, "the browser ended at once; see chromium.log"
            if told.exists() and told.read_text().count("\n") >= 1:
                connection = http.client.HTTPConnection("127.0.0.1", int(told.read_text().split("\n")[0]), timeout=_PATIENCE)
                connection.request("GET", "/json/list")
                pages = [t for t in json.loads(connection.getresponse().read()) if t["type"] == "page"]
                connection.close()
                if pages:
                    return str(pages[0]["webSocketDebuggerUrl"])
            time.sleep(0.02)
        raise AssertionError("the browser did not start in time; see chromium.log")

    def tell(self, method: str, **parameters: Any) -> Any:
        """One command of the protocol and its result; what happens meanwhile is noted. Raises AssertionError for a refusal."""
        self._count += 1
        self._socket.send(json.dumps({"id": self._count, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv(timeout=_PATIENCE))
            if message.get("id") == self._count:
                assert "error" not in message, f"{method}: {message['error']}"
                return message["result"]
            self._note(message.get("method", ""), message.get("params", {}))

    def _note(self, event: str, said: Any) -> None:
        match event:
            case "Network.requestWillBeSent":
                self.requests.append(said["request"]["url"])
            case "Runtime.exceptionThrown":
                self.complaints.append(json.dumps(said["exceptionDetails"])[:1000])
            case "Runtime.consoleAPICalled" if said["type"] in ("error", "assert"):
                self.complaints.append(json.dumps(said["args"])[:1000])
            case "Log.entryAdded" if said["entry"]["level"] == "error":
                self.complaints.append(f"{said['entry']['text']} {said['entry'].get('url', '')}")

    def size(self, width: int, height: int, *, phone: bool = False) -> None:
        self.tell("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)

    def open(self, url: str) -> None:
        """Go there. The page may still be loading afterwards: wait for what you need."""
        self.tell("Page.navigate", url=url)

    def run(self, script: str) -> Any:
        """The value of an expression in the page; promises are waited for. Raises AssertionError where it throws."""
        said = self.tell("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in said, said["exceptionDetails"]
        return said["result"].get("value")

    def wait(self, script: str, accepted: Callable[[Any], bool] = bool) -> Any:
        """The expression's value as soon as it is accepted. Raises AssertionError when that takes too long."""
        deadline = time.monotonic() + _PATIENCE
        while True:
            value = self.run(script)
            if accepted(value):
                return value
            assert time.monotonic() < deadline, f"waited in vain for {script}; it is {value!r}; the browser says {self.complaints}"
            time.sleep(0.03)

    def screenshot(self, file: Path) -> Path:
        """The page as it is seen now, in `file`; a copy stays in .local/screenshots, below the name of the file's folder."""
        file.write_bytes(base64.b64decode(self.tell("Page.captureScreenshot", format="png")["data"]))
        kept = _SHOTS / file.parent.name
        kept.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, kept / file.name)
        return file

    def close(self) -> None:
        """End the browser and whatever it started."""
        self._socket.close()
        self._process.terminate()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()
