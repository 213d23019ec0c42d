"""Chalice's command line, with our deployment package: `python -m infra.chalice deploy --stage prod`, and every other command.

Chalice has no list of files to leave out, and no setting for another packager: its deployer makes the class that its own module
names. That name is replaced here, by a subclass that packs as Chalice does and hands on what `infra/package.py` makes of it; so is
that of its client, by a more patient one.
Plain `chalice deploy` works too: the functions are the same, in a larger package whose modules are compiled at each cold start.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any
from zipfile import ZIP_STORED

from chalice.deploy import deployer
from chalice.deploy.packager import LambdaDeploymentPackager
from chalice.utils import OSUtils

from infra.deployment.chalice_client import Client
from infra.package import pack


class _Storing(OSUtils):
    """What Chalice packs is only read again here: it need not be compressed for that, which takes as long as compressing ours."""

    ZIP_DEFLATED = ZIP_STORED


class Packager(LambdaDeploymentPackager):
    """Chalice's packager of functions; what is deployed is our package, made of Chalice's and laid beside it."""

    def __init__(self, osutils: OSUtils, *arguments: Any, **named: Any) -> None:
        super().__init__(_Storing(), *arguments, **named)

    def create_deployment_package(self, project_dir: str, python_version: str) -> str:
        whole = Path(super().create_deployment_package(project_dir, python_version))
        ours = whole.with_name(f"packed-{whole.name}")
        pack(whole, ours)
        return str(ours)


def use_our_package() -> None:
    """Have each Chalice command of this process that packs use our packager, and that deploys our client."""
    # Imported there, and used from there.
    deployer.LambdaDeploymentPackager = Packager  # type: ignore[attr-defined]
    deployer.TypedAWSClient = Client  # type: ignore[attr-defined]


def main() -> int:
    """Run Chalice's command line with this process's arguments; its exit code."""
    from chalice.cli import main as chalice

    use_our_package()
    return int(chalice() or 0)


if __name__ == "__main__":
    sys.exit(main())
