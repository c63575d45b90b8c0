"""Tests with a GPU: muster refuses GPU tensors with an error that names nccl, and `cpu:muster,cuda:nccl` serves both kinds of tensors.

    MUSTER_GPU=1 python3 -m pytest python/tests/test_gpu.py
"""


def test_gpu_tensors_are_refused_and_nccl_named(python, ranks):
    for code, out, err in ranks(python, 'gpu.py', 2, 'refused').finish():
        assert (code, out.split()) == (0, ['done']), err


def test_ddp_of_a_model_on_the_gpu_is_refused(python, ranks):
    for code, out, err in ranks(python, 'gpu.py', 2, 'ddp_refused').finish():
        assert (code, out.split()) == (0, ['done']), err


def test_muster_for_the_cpu_beside_nccl(python, ranks):
    """The group has one rank, because nccl needs a GPU for each rank."""
    for code, out, err in ranks(python, 'gpu.py', 1, 'beside_nccl').finish():
        assert (code, out.split()) == (0, ['done']), err
