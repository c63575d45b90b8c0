"""The two operators as a benchmark starts them: each with its own account (by which the audit log distinguishes them) and the same budget."""
import base64
import concurrent.futures
import http.client
import json
import pathlib
import threading

import upstream
from cluster import HOST
from jobs import JOBS, Jobs, Operator, job
from program import LIMIT_S, turns

CREATORS, LOOK_S = 4, 0.25


def account(cluster, user):
    """Returns a kubeconfig with which the API server sees that user."""
    cluster.authority.issue(user, f'/O=system:masters/CN={user}', 'extendedKeyUsage=clientAuth')
    data = {f'client-{kind}-data': base64.b64encode((cluster.folder / f'{user}.{end}').read_bytes()).decode()
            for kind, end in (('certificate', 'crt'), ('key', 'key'))}
    return cluster.write_kubeconfig(user, cluster.url, user=data)


def status(pid, field):
    """Returns a memory size in KiB: VmHWM (the maximum so far) or VmRSS."""
    text = pathlib.Path(f'/proc/{pid}/status').read_text()
    return int(next(line for line in text.splitlines() if line.startswith(field)).split()[1])


class Peer:
    """One operator until it is closed. `name`: muster or upstream; user: its name in the audit log."""

    def __init__(self, cluster, name, user, qps, burst, namespace):
        self.cluster, self.name, self.user = cluster, name, user
        budget = (f'--kube-api-qps={qps}', f'--kube-api-burst={burst}')
        config = account(cluster, user)
        # Upstream's certificate is in another namespace: it must see all namespaces.
        self.running = Operator(config, *budget, f'--namespace={namespace}', '--zap-log-level=error') if name == 'muster' else upstream.Upstream(
            cluster, config, *budget, *(['--controller-threads=8'] if qps > 100 else []))

    def start(self):
        self.running.start()
        if self.name == 'upstream':
            self.running.wait_ready()
        return self

    def status(self, field):
        return status(self.running.process.pid, field)

    def cpu_s(self):
        words = pathlib.Path(f'/proc/{self.running.process.pid}/stat').read_text().rpartition(')')[2].split()
        return (int(words[11]) + int(words[12])) / 100

    def close(self):
        self.running.close()


class Requests:
    """The admin's requests, over connections that stay open, so that the measurement itself costs little."""

    def __init__(self, cluster):
        self.cluster, self.own = cluster, threading.local()

    def ask(self, method, path, body=None, content_type='application/json'):
        if not hasattr(self.own, 'connection'):
            self.own.connection = http.client.HTTPSConnection(HOST, self.cluster.port, context=self.cluster.tls, timeout=LIMIT_S)
        self.own.connection.request(method, path, None if body is None else json.dumps(body), {'Content-Type': content_type})
        answer = self.own.connection.getresponse()
        text = answer.read()
        assert answer.status < 300, f'{method} {path}: {text}'
        return json.loads(text)

    def side_by_side(self, calls, count=CREATORS):
        """Sends each of (method, path, body …), in any order."""
        with concurrent.futures.ThreadPoolExecutor(count) as pool:
            return list(pool.map(lambda call: self.ask(*call), calls))

    def create_jobs(self, namespace, names, workers):
        self.side_by_side([('POST', JOBS.format(namespace), job(name, workers=workers)) for name in names])

    def count(self, path):
        """Returns the number of objects, without a list of them."""
        found = self.ask('GET', f'{path}{"&" if "?" in path else "?"}limit=1')
        return len(found['items']) + found['metadata'].get('remainingItemCount', 0)

    def wait_count(self, path, wanted, limit_s):
        """Waits for that number of objects; returns the count, which is lower if the time was over."""
        count = 0
        for _ in self.looks(limit_s):
            count = self.count(path)
            if count >= wanted:
                break
        return count

    def looks(self, limit_s):
        """Yields every LOOK_S seconds: a query, too, takes the API server some time."""
        for number, _ in enumerate(turns(limit_s)):
            if number % int(LOOK_S / 0.02) == 0:
                yield


def namespace_jobs(cluster, name):
    return Jobs(cluster, cluster.namespace(name))
