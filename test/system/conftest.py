"""Helpers of the system tests: a fixture `muster` for each test (see test/program.py), and functions that write a job in one line."""
import http.client
import json
import socket
import sys

import pytest

from program import BUILD, LIMIT_S, SOURCE, Muster, limited, listens, wait_for  # noqa: F401 (the tests import them from here)


def job(name, command, workers=0, restart='Never', master=True, env=None, volumes=None, mounts=None, run_policy=None,
        worker_command=None, annotations=None):
    """Returns a PyTorchJob as a dict: a Master, unless `master` is false, and `workers` Workers; all run `command`, if no other is given."""

    def replica(count, words):
        container = {'name': 'pytorch', 'image': 'test', 'command': words}
        if env:
            container['env'] = [{'name': k, 'value': v} for k, v in env.items()]
        if mounts:
            container['volumeMounts'] = mounts
        spec = {'containers': [container]}
        if volumes:
            spec['volumes'] = volumes
        return {'replicas': count, 'restartPolicy': restart, 'template': {'spec': spec}}

    replicas = {}
    if master:
        replicas['Master'] = replica(1, command)
    if workers:
        replicas['Worker'] = replica(workers, worker_command or command)
    metadata = {'name': name}
    if annotations:
        metadata['annotations'] = annotations
    spec = {'pytorchReplicaSpecs': replicas}
    if run_policy:
        spec['runPolicy'] = run_policy
    return {'apiVersion': 'kubeflow.org/v1', 'kind': 'PyTorchJob', 'metadata': metadata, 'spec': spec}


def shell(script):
    return ['sh', '-c', script]


def python(script):
    return [sys.executable, '-c', script]


@pytest.fixture
def muster():
    runner = Muster()
    yield runner
    runner.close()


class Api:
    """Sends requests over the controller's Unix socket as they are given: this class encodes and checks nothing."""

    def __init__(self, muster, start=True):
        if start:
            muster.run('up')
        self.path = str(muster.home / 'api.sock')

    def call(self, method, target, body=None, kind='application/json'):
        """Returns the status and the document of the answer."""
        connection = http.client.HTTPConnection('localhost', timeout=LIMIT_S)
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.connect(self.path)
        headers = {'Content-Type': kind} if body is not None else {}
        connection.request(method, target, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        return answer.status, json.loads(text)


@pytest.fixture
def api(muster):
    return Api(muster)
