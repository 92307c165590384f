"""python -m tools.docs: build the site into build/site; --serve shows it."""

import argparse
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

from tools.docs.build import build


def main() -> None:
    """Build the site, and show it if asked to."""
    parser = argparse.ArgumentParser(prog="python -m tools.docs", description=__doc__)
    parser.add_argument("--serve", action="store_true", help="show the site until Ctrl-C")
    parser.add_argument("--port", type=int, default=8000, help="port of --serve")
    given = parser.parse_args()
    site = build()
    print(f"the site is in {site}: open index.html")
    if given.serve:
        handler = partial(SimpleHTTPRequestHandler, directory=str(site))
        with ThreadingHTTPServer(("127.0.0.1", given.port), handler) as server:
            print(f"http://127.0.0.1:{given.port} shows it until Ctrl-C")
            try:
                server.serve_forever()
            except KeyboardInterrupt:
                print()


if __name__ == "__main__":
    main()
