"""The Kubeflow example of distributed MNIST by DDP: ksonnet's commands, the old layouts, and the text's statements about the training."""
import re
import sys

import pytest
import torch
import torch.distributed

from seed import DATA, finish, mnist, mnist_command, row, run_by_hand

IMAGE = 'example/mnist-ddp:1.0'
MODEL = '/mnt/kubeflow-gcfs/pytorch/model'
WHO = """sh -c 'echo rank $RANK of $WORLD_SIZE'"""
ALL_RANKS = [f'rank {rank} of 4' for rank in range(4)]


def said_by_ranks(output):
    return sorted(re.findall(r'rank \d of \d', output))


@row('ddp-1')
def test_no_environment_has_to_be_made_before_a_job(muster):
    """The folder is empty, no variable KF_ENV is set, and the first command is the job."""
    assert 'KF_ENV' not in muster.env and list(muster.work.iterdir()) == []
    assert said_by_ranks(muster.run('run', '-f', DATA / 'ddp-v1beta1.yaml', '--image', f'{IMAGE}={WHO}').stdout) == ALL_RANKS


@row('ddp-2', 'ddp-6', 'ddp-13')
def test_v1beta1_job_trains_and_leaves_its_model_in_the_volume(muster):
    train = mnist_command('--images', 1024, '--save-model', '--dir', MODEL)
    output = muster.run('run', '-f', DATA / 'ddp-v1beta1.yaml', '--image', f'{IMAGE}={train}').stdout
    assert 'weights equal on 4 ranks' in output
    job, = muster.get('jobs')
    assert job['apiVersion'] == 'kubeflow.org/v1'
    muster.run('cp', f'mnist-ddp:{MODEL}', 'fetched')
    assert list(torch.load(muster.work / 'fetched/mnist_cnn.pt')) == ['0.weight', '0.bias', '3.weight', '3.bias', '7.weight', '7.bias',
                                                                     '9.weight', '9.bias']


@row('ddp-6')
def test_every_rank_sees_the_shared_disk(muster):
    meet = "sh -c 'touch /mnt/kubeflow-gcfs/$RANK; until [ $(ls /mnt/kubeflow-gcfs | wc -l) = 4 ]; do sleep 0.1; done'"
    muster.run('run', '-f', DATA / 'ddp-v1beta1.yaml', '--image', f'{IMAGE}={meet}')


@row('ddp-3', 'ddp-5')
@pytest.mark.parametrize('version', ['v1beta1', 'v1beta2'])
def test_gpu_job_runs_without_gpus_when_told_to(muster, version):
    text = (DATA / 'ddp-v1beta2.yaml').read_text().replace('v1beta2', version)
    if version == 'v1beta1':  # its run policy has only cleanPodPolicy and TTL
        text = re.sub(r'  (activeDeadlineSeconds|backoffLimit): .*\n', '', text)
    (muster.work / 'job_mnist_DDP_GPU.yaml').write_text(text)
    done = muster.run('run', '-f', 'job_mnist_DDP_GPU.yaml', '--no-gpu', '--image', f'{IMAGE}={WHO}')
    assert said_by_ranks(done.stdout) == ALL_RANKS


@row('ddp-4')
def test_v1beta2_run_policy_is_kept(muster):
    text = (DATA / 'ddp-v1beta2.yaml').read_text().replace('nvidia.com/gpu: 1', 'cpu: 1')
    (muster.work / 'job_mnist_DDP_CPU.yaml').write_text(text)
    muster.run('run', '-f', 'job_mnist_DDP_CPU.yaml', '--image', f'{IMAGE}={WHO}')
    job, = muster.get('jobs')
    policy = job['spec']['runPolicy']
    assert (policy['ttlSecondsAfterFinished'], policy['activeDeadlineSeconds'], policy['backoffLimit']) == (600, 300, 2)


@row('ddp-7')
def test_two_masters_are_refused(muster):
    text = (DATA / 'ddp-v1beta1.yaml').read_text().replace('replicas: 1', 'replicas: 2')
    (muster.work / 'job.yaml').write_text(text)
    done = muster.run('lint', 'job.yaml', code=65)
    said = done.stdout + done.stderr
    assert re.search(r'job\.yaml:\d+:\d+: .*Master.*replicas', said) and 'must be 1' in said, said


@row('ddp-8')
@pytest.mark.skipif(torch.distributed.is_mpi_available(), reason='this torch has MPI: the backend is used')
def test_mpi_backend_that_torch_lacks_is_named_with_what_there_is(tmp_path):
    output, _ = finish([mnist('--backend', 'mpi', '--rank', rank, '--world-size', 2, '--init-method', f'file://{tmp_path}/x')
                        for rank in range(2)], code=1)
    assert 'built without mpi' in output and 'gloo' in output and 'Traceback' not in output


@row('ddp-9', 'ddp-10')
def test_averaging_by_ddp_and_by_hand_gives_equal_weights(tmp_path):
    models = {}
    for how in 'ddp', 'hand':
        output = run_by_hand(tmp_path, 2, '--average', how, '--images', 1280, '--save-model', '--dir', tmp_path / how)
        assert 'weights equal on 2 ranks' in output[0]
        models[how] = torch.load(tmp_path / how / 'mnist_cnn.pt')
    for name, weight in models['ddp'].items():
        assert torch.allclose(weight, models['hand'][name], rtol=0, atol=1e-6), name


@row('ddp-11')
def test_strong_scaling_keeps_the_global_batch(tmp_path):
    for world in 1, 2, 4:
        output = run_by_hand(tmp_path, world, '--scaling', 'strong', '--batch-size', 32, '--images', 128)[0]
        assert f'effective batch size 32 ({32 // world} x {world} ranks), 4 steps per epoch' in output


@row('ddp-12')
def test_ranks_share_the_images_out_between_them():
    from torch.utils.data.distributed import DistributedSampler
    parts = [set(DistributedSampler(range(1280), 4, rank, seed=1)) for rank in range(4)]
    assert set.union(*parts) == set(range(1280)) and sum(map(len, parts)) == 1280
    source = (DATA.parent.parent.parent / 'examples/mnist/mnist.py').read_text()
    assert 'DistributedSampler(' in source and sys.modules['torch']
