"""Repeats an action in the background of a test."""
import threading

from program import LIMIT_S


class Repeated(threading.Thread):
    """`with Repeated(ask):` calls ask() again and again in its own thread, until the block is left. `answers`: what the calls have returned."""

    def __init__(self, ask):
        super().__init__(daemon=True)
        self.ask, self.answers, self.ended = ask, [], threading.Event()

    def run(self):
        while not self.ended.is_set():
            self.answers.append(self.ask())

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.join(LIMIT_S)
