"""Where things are: the checkout or the installed wheel, the binaries' cache, the state of a local cluster."""

import os
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent
CHECKOUT = PACKAGE.parent


def deploy_dir() -> Path:
    """The manifests: ``deploy/`` of the checkout, or the copy inside an installed wheel."""
    checkout = CHECKOUT / "deploy"
    return checkout if (CHECKOUT / "pyproject.toml").is_file() else PACKAGE / "deploy"


def default_state_dir() -> Path:
    """``.signalbox/`` of the checkout, or of the working directory where there is no checkout."""
    root = CHECKOUT if (CHECKOUT / "pyproject.toml").is_file() else Path.cwd()
    return root / ".signalbox"


def history_url(state_dir: Path) -> str:
    """The SQLite database in ``state_dir``; `down` keeps it."""
    return f"sqlite:///{state_dir / 'history.db'}"


def cache_dir() -> Path:
    """``$XDG_CACHE_HOME/signalbox``, by default ``~/.cache/signalbox``."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "signalbox"
