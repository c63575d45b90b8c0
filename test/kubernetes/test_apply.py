"""muster apply while a controller writes at the same time."""
import json
import os
import subprocess

from jobs import Jobs
from program import BUILD, LIMIT_S, wait_for
from proxy import Hold
from test_verbs import job


def test_a_status_that_is_written_meanwhile_is_no_change_of_the_file(cluster, served, namespace, proxy, tmp_path):
    jobs = Jobs(cluster, namespace)
    path = tmp_path / 'job.json'
    path.write_text(json.dumps(job('a')))
    words = [BUILD / 'bin/muster', 'apply', '-f', path, '--kubeconfig', cluster.write_kubeconfig('apply', proxy.url, namespace=namespace, user={})]
    env = {**os.environ, 'HOME': str(tmp_path)}
    first = subprocess.run(words, env=env, stdout=subprocess.PIPE, text=True, timeout=LIMIT_S, check=True)
    assert first.stdout == 'pytorchjob.kubeflow.org/a created\n'
    hold = proxy.add(Hold('PATCH', '/pytorchjobs/a'))
    second = subprocess.Popen(words, env=env, stdout=subprocess.PIPE, text=True)
    wait_for(hold.held.is_set, 'it has looked, and writes')
    jobs.patch('a', {'status': {'startTime': '2026-01-01T00:00:00Z'}}, part='/status')
    hold.release.set()
    assert second.communicate(timeout=LIMIT_S)[0] == 'pytorchjob.kubeflow.org/a unchanged\n'
