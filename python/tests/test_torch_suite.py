"""Runs PyTorch's own distributed tests, forked, with muster in place of gloo: each test that passes on gloo passes on muster.

`make test` runs some tests of each kind; with MUSTER_HEAVY=1 all of them run, first on gloo. Results of 2026-11: on 3
ranks torch 1.13.1 (Debian) passes 104 tests on gloo and 103 on muster; torch 2.15 passes 90 on gloo and 88 on muster.
The difference is UNFIT.
"""
import os
import re
import subprocess

import pytest
from conftest import HERE, PACKAGE

from program import PATIENCE

SOME = ['test_all_gather_group', 'test_all_gather_object_subgroup', 'test_all_reduce_max', 'test_all_reduce_coalesced_sum',
        'test_all_to_all_single_unequal_split', 'test_barrier_timeout_group', 'test_batch_isend_irecv_gloo_tags',
        'test_broadcast_group', 'test_ddp_broadcast_buffer', 'test_gather_full_group', 'test_irecv', 'test_isend',
        'test_monitored_barrier_gloo', 'test_new_subgroups', 'test_reduce_product', 'test_scatter_group',
        'test_send_recv_any_source', 'test_send_recv_with_tag', 'test_sparse_all_reduce_sum']
UNFIT = {'test_get_backend', 'test_ddp_logging_data_cpu'}  # these tests check the backend's name, which is "muster"


def run(python, backend, names, timeout_s, size=3):
    env = {k: v for k, v in os.environ.items() if k not in ('RANK', 'WORLD_SIZE', 'MASTER_PORT', 'MUSTER_BACKEND')}
    env.update(PYTHONPATH=str(PACKAGE), MUSTER_BACKEND=backend, WORLD_SIZE=str(size))
    ended = subprocess.run([python, str(HERE / 'torch_distributed.py'), *names], env=env, text=True, timeout=timeout_s * PATIENCE,
                           capture_output=True)
    lines = re.findall(r'^(ok|skip|FAIL) (test_\w+)(.*)', ended.stdout, re.M)
    assert lines, ended.stderr
    result = {word: {name for w, name, _ in lines if w == word} for word in ('ok', 'skip', 'FAIL')}
    return dict(result, small={name for _, name, why in lines if 'small world size' in why})


def listed(python):
    out = subprocess.run([python, str(HERE / 'torch_distributed.py'), '--list'], text=True, capture_output=True).stdout
    return set(re.findall(r'^test_\w+', out, re.M))


def test_some_of_each_kind(python):
    names = sorted(set(SOME) & listed(python))
    got = run(python, 'muster', names, 280)
    assert not got['FAIL'] and len(got['ok']) >= 12  # torch 2.x skips the others: a GPU, 8 ranks, MPI


@pytest.mark.heavy
def test_what_passes_on_gloo_passes_on_muster(python):
    gloo = run(python, 'gloo', [], 1500)
    ours = run(python, 'muster', sorted(gloo['ok']), 1500)
    print(f'{len(gloo["ok"])} pass on gloo, {len(ours["ok"])} of them on muster')
    assert gloo['ok'] - ours['ok'] <= UNFIT
    if gloo['small']:  # torch 2.x needs 8 ranks for tests of groups
        gloo, ours = (run(python, backend, sorted(gloo['small']), 600, size=8) for backend in ('gloo', 'muster'))
        assert gloo['ok'] and gloo['ok'] <= ours['ok']
