"""The commands about datasets and the models of HOP+: collect, pretrain, inspect."""

from coplay.commands.arguments import option, parse


def collect(arguments: list[str]) -> int:
    """coplay collect …"""
    from coplay.commands.collect import CollectArguments, default_arguments, run_collect

    kind, default = default_arguments(option(arguments, "game"))
    return run_collect(parse(CollectArguments[kind], arguments, "collect", default))  # type: ignore
