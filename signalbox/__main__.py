"""The ``signalbox`` command: a thin group; each subcommand lives in a module of its own and is imported when called."""

from importlib import import_module

import click

COMMANDS = {
    "check": "signalbox.run_check:check",
    "default": "signalbox.run_default:default",
    "explain": "signalbox.run_explain:explain",
    "policy": "signalbox.run_policy:policy",
    "up": "signalbox.local.commands:up",
    "down": "signalbox.local.commands:down",
    "status": "signalbox.local.commands:status",
    "webhook": "signalbox.run_webhook:webhook",
    "controller": "signalbox.run_controller:controller",
    "certs": "signalbox.run_certs:certs",
    "history": "signalbox.run_history:history",
    "manifests": "signalbox.manifests:manifests",
}


class LazyGroup(click.Group):
    """A group whose subcommands are imported on use, so that ``signalbox --help`` starts at once."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        target = COMMANDS.get(cmd_name)
        if target is None:
            return None
        module, _, name = target.partition(":")
        command = getattr(import_module(module), name)
        return command if isinstance(command, click.Command) else None


@click.command(
    cls=LazyGroup, context_settings={"auto_envvar_prefix": "SIGNALBOX", "help_option_names": ["-h", "--help"]}
)
@click.version_option(package_name="signalbox")
def main() -> None:
    """Admission webhook, controller and SQL history for training jobs on Kubernetes."""


if __name__ == "__main__":
    main()
