"""The asynchronous client as a program (speaker.c), which reads commands and prints answers line by line."""
import json
import queue
import subprocess
import threading

from cluster import die_with_parent
from program import BUILD, LIMIT_S


class Speaker:
    """One client; calls and watches have numbers."""

    def __init__(self, *options, env=None):
        self.process = subprocess.Popen([BUILD / 'tests/kubernetes_speaker', *map(str, options)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, env=env, preexec_fn=die_with_parent)
        self.answers = {}  # id -> a queue with one answer
        self.news = {}  # watch -> a queue of changes
        self.ended = queue.Queue()
        self.last = 0
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            said = json.loads(line)
            if 'id' in said:
                self.answers[said['id']].put(said)
            elif 'watch' in said:
                self.news[said['watch']].put(said)
            else:
                self.ended.put(said['ended'])
        for waiting in [*self.answers.values(), *self.news.values(), self.ended]:
            waiting.put(None)  # the process has ended

    def take(self, box, what):
        try:
            said = box.get(timeout=LIMIT_S)
        except queue.Empty:
            raise AssertionError(f'{what} within {LIMIT_S} s') from None
        assert said is not None, f'{what}: the speaker ended with {self.process.wait(LIMIT_S)}: {self.process.stderr.read()}'
        return said

    def say(self, **line):
        self.process.stdin.write(json.dumps(line) + '\n')
        self.process.stdin.flush()

    def send(self, verb, resource, **request):
        """Starts a call, and returns its number; `answer` returns its result."""
        self.last += 1
        self.answers[self.last] = queue.Queue()
        self.say(id=self.last, verb=verb, **resource, **request)
        return self.last

    def answer(self, call):
        return self.take(self.answers[call], f'no answer to {call}')

    def call(self, verb, resource, **request):
        return self.answer(self.send(verb, resource, **request))

    def watch(self, resource, **scope):
        self.last += 1
        self.news[self.last] = queue.Queue()
        self.say(watch=self.last, **resource, **scope)
        return self.last

    def next(self, watch, *kinds):
        """Returns the next news of these kinds. Bookmarks come at any time, and are skipped unless `kinds` has them."""
        while True:
            news = self.take(self.news[watch], f'no news of watch {watch}')
            if news['news'] in kinds or (not kinds and news['news'] != 'BOOKMARK'):
                return news

    def synced(self, watch):
        """Reads one whole listing, and returns the names of its objects."""
        names = []
        while True:
            news = self.next(watch)
            if news['news'] == 'BEGIN':
                names = []
            elif news['news'] == 'OBJECT':
                names.append(news['object']['metadata']['name'])
            elif news['news'] == 'SYNCED':
                return sorted(names)

    def end(self, kind, number):
        self.say(**{kind: number})
        assert self.take(self.ended, 'no end') == number

    def close(self):
        """Closes the program's input; it must end by itself, without errors, and with no handle left."""
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass  # its exit status says more
        code = self.process.wait(LIMIT_S)
        self.reader.join(LIMIT_S)
        said = self.process.stderr.read()
        self.process.stdout.close()
        self.process.stderr.close()
        assert code == 0, f'the speaker ended with {code}: {said}'
