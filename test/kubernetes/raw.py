"""Requests written by hand, to either cluster of the tests: requests that no client sends, and unchanged answers."""
import json
import ssl
import urllib.error
import urllib.request

from program import LIMIT_S


class Answer:
    def __init__(self, code, headers, text):
        self.code, self.headers, self.text = code, headers, text

    @property
    def json(self):
        return json.loads(self.text)

    @property
    def lines(self):
        """The lines of a watch, parsed."""
        return [json.loads(line) for line in self.text.splitlines()]


class Raw:
    """Sends requests to a side (test_verbs.py), as a user who may do everything."""

    def __init__(self, side):
        self.headers = {}
        if hasattr(side, 'cluster'):
            self.url, self.tls = side.cluster.url, side.cluster.tls
        else:
            home = side.muster.home
            self.url = json.loads((home / 'server.json').read_text())['server']
            self.tls = ssl.create_default_context(cafile=home / 'tls/cert.pem')
            self.headers['Authorization'] = f'Bearer {(home / "token").read_text().strip()}'

    @property
    def port(self):
        return int(self.url.rsplit(':', 1)[1])

    def __call__(self, method, path, body=None, content='application/json', accept='application/json'):
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        headers = {**self.headers, 'Accept': accept, **({'Content-Type': content} if data is not None else {})}
        asked = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(asked, timeout=LIMIT_S, context=self.tls) as answer:
                return Answer(answer.status, answer.headers, answer.read().decode())
        except urllib.error.HTTPError as refused:
            return Answer(refused.code, refused.headers, refused.read().decode())
