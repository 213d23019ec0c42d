"""Chalice's command line, with our deployment package: `python -m infra.chalice deploy --stage prod`, and every other command.

Chalice has no list of files to leave out, and no setting for another packager: its deployer makes the class that its own module
names. That name is replaced here, by a subclass that hands on what `infra/package.py` makes of the libraries and our code; so is
that of its client, by a more patient one.

Our package lies where Chalice keeps its own, under the name by which Chalice finds it again: that of the checksum of all that it
would pack. So plain `chalice deploy` uploads it too, and says "Reusing existing deployment package", as long as nothing of our code
has changed since the command `package`, or a deploy, has written it. Otherwise it makes a package of its own, of the code as it
is: larger, and compiled at each cold start. Changed code is never deployed as it was before. What Chalice's checksum does not see
is a file that was only renamed, or an empty one.

Chalice knows what it made by a file of the checkout that made it: from another one it would make a second API. So `deploy` is given
the record of what stands first, and shares what becomes of it, under the stage's lock (`infra/deployment/code.py`). Plain `chalice`
takes the file that the operator's command `prepare` leaves.
"""

from __future__ import annotations

import functools
import importlib.util
import py_compile
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any
from zipfile import ZIP_STORED

import click
from botocore.exceptions import BotoCoreError, ClientError
from chalice.deploy import deployer
from chalice.deploy.packager import DependencyBuilder, LambdaDeploymentPackager, Package
from chalice.utils import UI, OSUtils
from click import ClickException
from packaging.requirements import Requirement

from chalicelib.settings import STAGES
from infra.commands.common import CanNot
from infra.deployment.chalice_client import Client
from infra.lambda_platform import demand_python
from infra.package import pack
from infra.stage_settings import one_region

_CHECKED_HASH = (0b11).to_bytes(4, "little")


class _Refused(CanNot, ClickException):
    """Chalice's command line prints the message of such an exception, and a traceback of others."""


class _Storing(OSUtils):
    """What Chalice packs is only read again here: it need not be compressed for that, which takes as long as compressing ours."""

    ZIP_DEFLATED = ZIP_STORED


class Wheels(DependencyBuilder):
    """The pinned libraries, each as its project built it for Lambda's Python, C library and processor, whatever this machine is.

    Chalice's own takes what fits this machine first, compiles what has no wheel, and goes on without what it could not get. What
    was compiled here is linked with this machine's libraries, which Lambda may lack or have in an older version.
    """

    def build_site_packages(self, abi: str, requirements_filepath: str, target_directory: str) -> None:
        if not self._has_at_least_one_package(requirements_filepath):
            return
        with tempfile.TemporaryDirectory() as folder:
            self.download(abi, requirements_filepath, folder)
            wheels = {Package(folder, file.name) for file in Path(folder).iterdir()}
            self._install_wheels(folder, target_directory, wheels)

    def download(self, abi: str, requirements: str, folder: str) -> None:
        """Download them into a folder. What each depends on is pinned, too, and need not be looked for (a test compares).

        Raises CanNot for what there is no wheel of.
        https://pip.pypa.io/en/stable/cli/pip_download/#cmdoption-python-version
        """
        python = ["--implementation=cp", f"--python-version={abi[2]}.{abi[3:]}", "--only-binary=:all:", "--no-deps"]
        platforms = [f"--platform={each}" for each in self._get_pip_platforms(abi)]
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", *python, *platforms]
        wanted = pinned(Path(requirements).read_text(), self._machine)
        done = subprocess.run([*command, f"--dest={folder}", *wanted], capture_output=True, text=True, check=False)
        if done.returncode:
            said = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or [done.stderr.strip()]
            raise _Refused(f"the libraries for {abi} on {self._machine} can not be had: {' '.join(said)}")


def pinned(requirements: str, machine: str) -> list[str]:
    """The requirements of a file that are for functions on the processor `machine`, as pip takes them on its command line.

    pip would ask the marker `platform_machine` about the processor that it runs on, whatever `--platform` says.
    https://pip.pypa.io/en/stable/cli/pip_download/#overview
    """
    lines = (re.sub(r"(^|\s+)#.*$", "", line).strip() for line in requirements.splitlines())
    found = [Requirement(line) for line in lines if line]
    applying = [each for each in found if each.marker is None or each.marker.evaluate({"platform_machine": machine})]
    return [str(each).partition(";")[0].strip() for each in applying]


class Packager(LambdaDeploymentPackager):
    """Chalice's packager of functions; what it makes is our package."""

    def __init__(self, osutils: OSUtils, dependency_builder: Any, ui: UI, architecture: str = "x86_64") -> None:
        storing = _Storing()
        super().__init__(storing, Wheels(storing, architecture=architecture), ui, architecture)

    def create_deployment_package(self, project_dir: str, python_version: str) -> str:
        """The package, made anew each time. Raises CanNot; nothing stands in its place then that did not before."""
        self._ui.write("Creating deployment package.\n")
        try:
            demand_python(Path(project_dir))
            _compile(Path(project_dir) / self._CHALICE_LIB_DIR)
            ready = Path(self.deployment_package_filename(project_dir, python_version))
            ready.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory() as folder:
                whole = Path(folder) / "whole.zip"
                self._pack_all(project_dir, python_version, whole)
                pack(whole, ready, self._architecture)
        except CanNot as error:
            raise _Refused(str(error)) from error
        return str(ready)

    def _pack_all(self, project_dir: str, python_version: str, whole: Path) -> None:
        """As Chalice's own does, but never half: that takes the file that a cut has left for a package."""
        libraries = whole.with_suffix(".libraries")
        libraries.mkdir()
        self._build_python_dependencies(python_version, self._get_requirements_filename(project_dir), str(libraries))
        with self._osutils.open_zip(str(whole), "w", ZIP_STORED) as archive:
            self._add_py_deps(archive, deps_dir=str(libraries))
            self._add_app_files(archive, project_dir)
            self._add_vendor_files(archive, self._osutils.joinpath(project_dir, self._VENDOR_DIR))


def _compile(modules: Path) -> None:
    """Compile all of our modules where they are, each with its source's hash, by which Python checks it at every import.

    Chalice's checksum is of these files, too: one that appears behind the package makes plain Chalice pack anew, and them.
    As Python compiles by itself, with the time of the source, an old one may pass for that of a source that was changed since.
    https://peps.python.org/pep-0552/
    """
    for source in sorted(modules.rglob("*.py")):
        compiled = Path(importlib.util.cache_from_source(str(source)))
        head = importlib.util.MAGIC_NUMBER + _CHECKED_HASH + importlib.util.source_hash(source.read_bytes())
        if not compiled.exists() or compiled.read_bytes()[: len(head)] != head:
            py_compile.compile(str(source), doraise=True, invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH)


def write_package(project: Path, stage: str) -> Path:
    """Write the package that a deploy of the stage uploads, plain `chalice deploy` as well; its file. Raises CanNot."""
    from chalice.cli.factory import CLIFactory

    config = CLIFactory(str(project)).create_config_obj(chalice_stage_name=stage)
    packager = Packager(OSUtils(), None, UI(), config.lambda_architecture)
    return Path(packager.create_deployment_package(str(project), config.lambda_python_version))


def use_our_package() -> None:
    """Have each Chalice command of this process that packs use our packager, and that deploys our client."""
    # Imported there, and used from there.
    deployer.LambdaDeploymentPackager = Packager  # type: ignore[attr-defined]
    deployer.TypedAWSClient = Client  # type: ignore[attr-defined]


def go_on_with_what_stands() -> None:
    """Have the command `deploy` of this process go on with what stands of the stage, whichever checkout deployed it, and end where
    the stage's lock is lost."""
    from chalice import cli

    run: Any = cli.deploy.callback

    @functools.wraps(run)
    @click.pass_context
    def adopting(context: click.Context, /, **given: Any) -> None:
        import boto3

        from infra.deployment.bucket import make_bucket
        from infra.deployment.chalice_client import Told
        from infra.deployment.code import recording
        from infra.deployment.lock import locked

        stage, deployed = given["stage"], [each for each in STAGES if each != "local"]
        try:
            if stage not in deployed:
                raise CanNot(f"--stage is {' or '.join(deployed)}, and not {stage}")
            session = boto3.Session(profile_name=given["profile"])
            with (
                locked(make_bucket(session), stage, click.echo) as lock,
                recording(session, lock.bucket, lock, Path(context.obj["project_dir"])),
            ):
                cli.UI = functools.partial(Told, lock, click.echo)  # type: ignore[assignment,attr-defined]
                run(**given)
        except (CanNot, ClientError, BotoCoreError) as error:
            raise _Refused(" ".join(str(error).split())) from error

    cli.deploy.callback = adopting


def main() -> int:
    """Run Chalice's command line with this process's arguments; its exit code."""
    from chalice.cli import main as chalice

    one_region()
    use_our_package()
    go_on_with_what_stands()
    return int(chalice() or 0)


if __name__ == "__main__":
    sys.exit(main())
