"""Upstream's own envtest suite (pkg/controller.v1/pytorch/pytorchjob_controller_test.go of the training-operator 1.9.4), unmodified, on
`muster operator`: the only file that is replaced is the one that starts upstream's operator (envtest/suite.go). The suite is compiled here; without
Go or the network this fails.
"""
import json
import os
import shutil
import subprocess

import pytest

import upstream
from client_programs import SOURCES, go_environment, make
from jobs import Operator
from program import PATIENCE

PACKAGE = 'pkg/controller.v1/pytorch'
CASES = 7


@pytest.fixture(scope='module')
def suite(tmp_path_factory):
    """Returns (the program, the folder of its package)."""
    module, folder = upstream.module(), tmp_path_factory.mktemp('envtest')
    shutil.copytree(module / 'pkg', folder / 'pkg')
    for name in ('go.mod', 'go.sum'):
        shutil.copy(module / name, folder)
    shutil.copy(SOURCES.parent / 'envtest/suite.go', folder / PACKAGE / 'pytorchjob_controller_suite_test.go')
    make('go', 'test', '-c', '-o', folder / 'suite', f'./{PACKAGE}', cwd=folder, env=go_environment())
    return folder / 'suite', folder / PACKAGE


@pytest.mark.heavy
def test_all_cases_pass(cluster, served, suite, tmp_path):
    """All cases pass. One case updates the job that it has read, and does not try again: if the operator writes a status in between, that is a
    conflict. The case is then repeated."""
    program, folder = suite
    operator = Operator(cluster.kubeconfig).start()
    try:
        operator.wait_ready()
        told = tmp_path / 'told.json'
        done = subprocess.run([program, '-test.run=TestAPIs', '-ginkgo.no-color', '-ginkgo.flake-attempts=5', f'-ginkgo.json-report={told}'], cwd=folder,
                              env={**os.environ, 'KUBECONFIG': str(cluster.kubeconfig)}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=300 * PATIENCE, check=False)
        assert done.returncode == 0, done.stdout[-8000:]
        cases = [case for case in json.loads(told.read_text())[0]['SpecReports'] if case['LeafNodeType'] == 'It']
        assert [case['State'] for case in cases] == ['passed'] * CASES, [(case['LeafNodeText'], case['State']) for case in cases]
        assert operator.end() == 0
    finally:
        operator.close()
