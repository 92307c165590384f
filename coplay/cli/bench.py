"""coplay bench: how fast it is here."""

from coplay.cli.arguments import parse
from coplay.core.errors import unknown

PARTS = ("peers", "search", "hop-plus")


def run(arguments: list[str]) -> int:
    """coplay bench [peers|search|hop-plus]"""
    if arguments[:1] == ["peers"]:
        from coplay.bench.peers import PeersArguments, run_peers

        return run_peers(parse(PeersArguments, arguments[1:], "bench peers"))
    if arguments[:1] == ["search"]:
        from coplay.bench.search import SearchBenchArguments, run_search_bench

        return run_search_bench(parse(SearchBenchArguments, arguments[1:], "bench search"))
    if arguments[:1] == ["hop-plus"]:
        from coplay.bench.hop_plus import HopPlusBenchArguments, run_hop_plus_bench

        return run_hop_plus_bench(parse(HopPlusBenchArguments, arguments[1:], "bench hop-plus"))
    if arguments and not arguments[0].startswith("-"):
        raise unknown("part to bench", arguments[0], PARTS)
    from coplay.bench.throughput import BenchArguments, run_bench

    return run_bench(parse(BenchArguments, arguments, "bench"))
