"""What waits to be sent to one browser."""

import asyncio

WAITING = 64
"""Messages that may wait. Who is so far behind is sent away."""


class Outbox(asyncio.Queue[str | None]):
    """Texts in their order; None: the connection is to end."""

    def __init__(self) -> None:
        super().__init__(WAITING)

    def send(self, text: str | None) -> None:
        """Something to be sent. Who does not keep up is sent away, and comes again."""
        try:
            self.put_nowait(text)
        except asyncio.QueueFull:
            while not self.empty():
                self.get_nowait()
            self.put_nowait(None)
