"""What a person sees while something takes its time."""

import contextlib
import time
from collections.abc import Iterator

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn


@contextlib.contextmanager
def shown(label: str, console: Console) -> Iterator[None]:
    """A spinner with the time elapsed on a terminal; elsewhere one line when it is done."""
    if not console.is_terminal:
        begin = time.monotonic()
        yield
        console.print(f"{label}: {time.monotonic() - begin:.1f} s", highlight=False)
        return
    columns = (SpinnerColumn(finished_text="[green]✓"), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(label, total=1)
        yield
        progress.update(task, completed=1)
