"""Watches one resource of an API server in all namespaces: its objects as they are now, and how often each was created and deleted."""
import collections
import http.client
import json
import socket
import threading

from cluster import HOST


class Watched:
    """Lists the objects, then watches them in a separate thread, until it is closed. `on_event(type, object)` is called for each object and
    change."""

    def __init__(self, cluster, path, on_event=None):
        self.cluster, self.path, self.on_event = cluster, path, on_event
        self.lock = threading.Lock()
        # {namespace: {name: object}}
        self.objects = collections.defaultdict(dict)
        self.made, self.deleted = (collections.defaultdict(collections.Counter) for _ in range(2))
        self.failure = None
        listed = cluster.request('GET', path)
        for found in listed['items']:
            self.note('ADDED', found)
        self.connection = http.client.HTTPSConnection(HOST, cluster.port, context=cluster.tls)
        self.connection.request('GET', f'{path}?watch=true&resourceVersion={listed["metadata"]["resourceVersion"]}&timeoutSeconds=3600')
        self.socket = self.connection.sock
        self.thread = threading.Thread(target=self.follow, args=(self.connection.getresponse(),), daemon=True)
        self.thread.start()

    def follow(self, answer):
        try:
            for line in answer:
                said = json.loads(line)
                self.note(said['type'], said['object'])
        except (OSError, ValueError, AttributeError, http.client.HTTPException) as ended:
            self.failure = ended

    def note(self, kind, found):
        namespace, name = found['metadata']['namespace'], found['metadata']['name']
        with self.lock:
            if kind == 'ADDED':
                self.made[namespace][name] += 1
            if kind == 'DELETED':
                self.deleted[namespace][name] += 1
                self.objects[namespace].pop(name, None)
            else:
                self.objects[namespace][name] = found
        if self.on_event:
            self.on_event(kind, found)

    def of(self, namespace):
        """Returns {name: object} of a namespace."""
        assert self.failure is None, f'the watch of {self.path} ended: {self.failure}'
        with self.lock:
            return dict(self.objects[namespace])

    def counts(self, counter, namespace):
        with self.lock:
            return dict(counter[namespace])

    def close(self):
        self.on_event = None
        self.socket.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.connection.close()
