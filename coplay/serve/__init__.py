"""The server of `coplay serve`: runs in the browser, live, and people in the seats of a game.

It needs the extra `web` (Starlette, uvicorn, websockets). Nothing else of the library imports it.
"""
