"""A kubelet's part, played by the test: each rank does what its scenario says (`ranks` of test/data/lifecycle.md). Pods are bound to a node,
so that a deletion waits until their containers have ended, as on a real one. Nothing runs.
"""
import collections
import datetime
import heapq
import http.client
import itertools
import json
import queue
import threading
import time

from cluster import HOST
from program import LIMIT_S

NODE, MERGE = 'node', 'application/merge-patch+json'
SIGTERM_EXIT, SIGKILL_EXIT = 143, 137
BACKOFF_S, BACKOFF_MAX_S = 10, 300
WAIT_FOR_MASTER = 'init-pytorch'


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime('%Y-%m-%dT%H:%M:%SZ')


class Pod:
    """One pod, as its kubelet sees it."""

    def __init__(self, found, rank):
        self.namespace, self.name, self.uid = (found['metadata'][key] for key in ('namespace', 'name', 'uid'))
        self.spec, self.rank = found['spec'], rank
        self.restarts, self.is_over, self.is_going, self.last = 0, False, False, None
        self.acting = None

    def path(self, part=''):
        return f'/api/v1/namespaces/{self.namespace}/pods/{self.name}{part}'

    def waits_for_master(self):
        return any(container['name'] == WAIT_FOR_MASTER for container in self.spec.get('initContainers', []))

    def status(self, phase, state):
        def container(spec, its_state, ready):
            said = {'name': spec['name'], 'image': spec['image'], 'imageID': '', 'ready': ready, 'restartCount': self.restarts, 'state': its_state}
            return {**said, 'lastState': {'terminated': self.last}} if self.last else said
        is_ready = phase == 'Running' and 'running' in state
        done = {'terminated': {'exitCode': 0, 'reason': 'Completed', 'finishedAt': now()}}
        return {'phase': phase, 'startTime': now(), 'conditions': [{'type': 'Ready', 'status': str(is_ready)}],
                'initContainerStatuses': [container(spec, done, True) for spec in self.spec.get('initContainers', [])],
                'containerStatuses': [container(spec, state, is_ready) for spec in self.spec['containers']]}


class Kubelet:
    """Plays a kubelet in a thread. `ranks`: {namespace: {replica: [acts]}}, filled in before the job is made. A watch of pods calls `on_pod`."""

    def __init__(self, cluster, job='case'):
        self.prefix, self.ranks = f'{job}-', {}
        self.connection = http.client.HTTPSConnection(HOST, cluster.port, context=cluster.tls, timeout=LIMIT_S)
        self.events, self.due, self.order = queue.Queue(), [], itertools.count()
        self.pods, self.attempts, self.masters = {}, collections.Counter(), set()
        self.waiting = collections.defaultdict(list)
        self.failure, self.thread = None, threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def on_pod(self, kind, found):
        self.events.put((kind, found))

    def close(self):
        self.events.put((None, None))
        self.thread.join()
        self.connection.close()
        assert self.failure is None, self.failure

    def run(self):
        try:
            while self.turn():
                pass
        except Exception as failure:  # noqa: BLE001 (the thread that closes it reports it)
            self.failure = failure
            raise

    def turn(self):
        """Does what is due, then handles one event; returns False when it is closed."""
        while self.due and self.due[0][0] <= time.monotonic():
            heapq.heappop(self.due)[2]()
        try:
            kind, found = self.events.get(timeout=max(0.0, self.due[0][0] - time.monotonic()) if self.due else None)
        except queue.Empty:
            return True
        if kind == 'SEEN':
            found.set()
        elif kind and found['metadata']['namespace'] in self.ranks and found['metadata']['name'].startswith(self.prefix):
            self.see(kind, found)
        return kind is not None

    def catch_up(self):
        """Waits until it has handled all events that have arrived."""
        seen = threading.Event()
        self.events.put(('SEEN', seen))
        assert seen.wait(LIMIT_S), self.failure

    def after(self, seconds, act):
        heapq.heappush(self.due, (time.monotonic() + seconds, next(self.order), act))

    def send(self, method, path, body, content_type='application/json'):
        """Sends a request, and returns whether it was accepted: the pod may be gone by then, or another pod may have its name."""
        self.connection.request(method, path, json.dumps(body), {'Content-Type': content_type})
        answer = self.connection.getresponse()
        text = answer.read()
        is_another = answer.status == 422 and b'"field":"metadata.uid"' in text
        assert answer.status < 300 or answer.status in (404, 409) or is_another, f'{method} {path}: {text}'
        return answer.status < 300

    def see(self, kind, found):
        meta = found['metadata']
        pod = self.pods.get(meta['uid'])
        if kind == 'DELETED':
            if pod:
                pod.is_over = True
                self.master_is(pod, False)
            return
        if pod is None and 'deletionTimestamp' not in meta:
            pod = self.pods[meta['uid']] = Pod(found, meta['name'][len(self.prefix):])
            if self.send('POST', pod.path('/binding'), {'metadata': {'name': pod.name}, 'target': {'kind': 'Node', 'name': NODE}}):
                self.begin(pod)
        if pod and 'deletionTimestamp' in meta and not pod.is_going:
            pod.is_going = True
            self.terminate(pod, meta['deletionGracePeriodSeconds'])

    def begin(self, pod):
        if pod.waits_for_master() and pod.namespace not in self.masters:
            self.waiting[pod.namespace].append(pod)
            return
        self.start(pod)

    def start(self, pod):
        """Starts one attempt of a pod."""
        if pod.is_over or pod.is_going:
            return
        acts = self.ranks[pod.namespace].get(pod.rank, [{'run': None}])
        number = self.attempts[pod.namespace, pod.rank]
        self.attempts[pod.namespace, pod.rank] += 1
        pod.acting = act = acts[min(number, len(acts) - 1)]
        if act.get('never'):
            return
        if 'evicted' in act:
            self.after(act['evicted'], lambda: self.evict(pod))
        self.say(pod, 'Running', {'running': {'startedAt': now()}})
        self.master_is(pod, True)
        if act.get('run') is not None:
            self.after(act['run'], lambda: self.exit(pod, act))

    def master_is(self, pod, is_ready):
        if pod.rank != 'master-0':
            return
        (self.masters.add if is_ready else self.masters.discard)(pod.namespace)
        while is_ready and self.waiting[pod.namespace]:
            self.start(self.waiting[pod.namespace].pop())

    def say(self, pod, phase, state):
        return self.send('PATCH', pod.path('/status'), {'metadata': {'uid': pod.uid}, 'status': pod.status(phase, state)}, MERGE)

    def evict(self, pod):
        """Evicts a pod as a node under pressure does: its containers have no status."""
        if not pod.is_over:
            pod.is_over = True
            self.send('PATCH', pod.path('/status'), {'metadata': {'uid': pod.uid}, 'status': {
                'phase': 'Failed', 'reason': 'Evicted', 'message': 'the node was low on memory', 'containerStatuses': None,
                'initContainerStatuses': None}}, MERGE)

    def exit(self, pod, act):
        if pod.is_over or pod.is_going:
            return
        code = act.get('exit', 0)
        reason = 'OOMKilled' if act.get('oom') else 'Completed' if code == 0 else 'Error'
        pod.last = {'exitCode': code, 'reason': reason, 'startedAt': now(), 'finishedAt': now()}
        policy = pod.spec['restartPolicy']
        if policy == 'Always' or (policy == 'OnFailure' and code != 0):
            self.restart(pod)
            return
        pod.is_over = True
        ended, pod.last = pod.last, None
        self.say(pod, 'Succeeded' if code == 0 else 'Failed', {'terminated': ended})

    def restart(self, pod):
        """Restarts a pod in place: at once the first time, then after 10 s, then after twice as long each time."""
        wait_s = 0 if pod.restarts == 0 else min(BACKOFF_S << (pod.restarts - 1), BACKOFF_MAX_S)
        pod.restarts += 1
        if wait_s:
            self.say(pod, 'Running', {'waiting': {'reason': 'CrashLoopBackOff', 'message': 'back-off restarting failed container'}})
        self.after(wait_s, lambda: self.start(pod))

    def terminate(self, pod, grace_s):
        if (pod.acting or {}).get('nodeLost'):
            return
        ignores = (pod.acting or {}).get('ignoresTerm')
        self.after(grace_s if ignores else 0, lambda: self.gone(pod, SIGKILL_EXIT if ignores else SIGTERM_EXIT))

    def gone(self, pod, code):
        if not pod.is_over:
            pod.is_over = True
            if pod.acting:
                self.say(pod, 'Failed', {'terminated': {'exitCode': code, 'reason': 'Error', 'finishedAt': now()}})
        self.master_is(pod, False)
        self.send('DELETE', pod.path(), {'gracePeriodSeconds': 0, 'preconditions': {'uid': pod.uid}})
