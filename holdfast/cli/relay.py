"""`holdfast relay`: the relay in the foreground, for any client of Toxiproxy."""

import typer

# The relay reads its own flags: a user of toxiproxy-server writes them with one dash.
FLAGS_ARE_ITS_OWN = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


def relay(context: typer.Context) -> None:
    """Relay TCP and UDP with faults, behind the HTTP API of Toxiproxy."""
    from holdfast.chaos.relay.process import main

    main(context.args)
