"""Follows all writes to one resource of a namespace in etcd, even if the API server fails. The API server must keep JSON there (`STORED`,
options of Cluster); etcd must stay alive.
"""
import base64
import http.client
import json
import socket
import threading

from cluster import HOST

STORED = {'storage-media-type': 'application/json'}


def text(data):
    return base64.b64encode(data.encode()).decode()


def remove_stored(cluster, resource, namespace, name):
    """Removes an object from etcd in one step; the API server would first mark it in a separate step."""
    connection = http.client.HTTPConnection(HOST, cluster.etcd_port)
    try:
        connection.request('POST', '/v3/kv/deleterange', json.dumps({'key': text(f'/registry/{resource}/{namespace}/{name}')}))
        assert json.loads(connection.getresponse().read())['deleted'] == '1', f'{name} was not there'
    finally:
        connection.close()


class Follower:
    """A thread that runs until it is closed; it calls `on_event(type, object)` once for each event, in order. If that raises an exception, `check`
    and `close` raise it too. `resource`: its name in etcd's keys; `since`: a revision of etcd: 1 for everything that etcd still has, 0 for new events
    only.
    """

    def __init__(self, cluster, resource, namespace, on_event, since=0):
        self.on_event, self.failure = on_event, None
        first = f'/registry/{resource}/{namespace}/'
        asked = {'create_request': {'key': text(first), 'range_end': text(first[:-1] + '0'), 'prev_kv': True, 'start_revision': since}}
        self.connection = http.client.HTTPConnection(HOST, cluster.etcd_port)
        self.connection.request('POST', '/v3/watch', json.dumps(asked))
        self.socket = self.connection.sock
        self.answer = self.connection.getresponse()
        assert json.loads(self.answer.readline())['result']['created']
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        try:
            for line in self.answer:
                for event in json.loads(line)['result'].get('events', []):
                    self.note(event)
        except (OSError, ValueError, AttributeError, http.client.HTTPException) as ended:
            self.failure = self.failure or ended
        except AssertionError as wrong:
            self.failure = wrong

    def note(self, event):
        gone, kept = event.get('type') == 'DELETE', event['kv']
        kind = 'DELETED' if gone else 'ADDED' if kept['create_revision'] == kept['mod_revision'] else 'MODIFIED'
        self.on_event(kind, json.loads(base64.b64decode((event['prev_kv'] if gone else kept)['value'])))

    def check(self):
        assert self.failure is None, self.failure

    def close(self):
        failure = self.failure
        self.socket.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.connection.close()
        assert failure is None, failure
