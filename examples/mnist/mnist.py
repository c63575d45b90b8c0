#!/usr/bin/env python3
"""Trains a small convolutional network on MNIST or Fashion-MNIST with torch.distributed.

As a PyTorchJob it needs no flag: rank, world size and address come from the environment that the operator sets.
By hand, in two terminals (each rank waits until the other one has started):

    python3 mnist.py --rank 0 --world-size 2 --init-method file:///tmp/torchsharedfile
    python3 mnist.py --rank 1 --world-size 2 --init-method file:///tmp/torchsharedfile

Data: the four IDX files of MNIST (gzipped or not), from --training-data or from where Debian's dataset-fashion-mnist
puts them. Nothing is ever downloaded.
"""
import argparse
import gzip
import hashlib
import math
import os
import pathlib
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data.distributed import DistributedSampler

PLACES = ['/usr/share/datasets/fashion-mnist', '/usr/share/datasets/mnist', 'data/FashionMNIST/raw', 'data/MNIST/raw', 'data']
PARTS = {'train': ('train-images-idx3-ubyte', 'train-labels-idx1-ubyte'), 'test': ('t10k-images-idx3-ubyte', 't10k-labels-idx1-ubyte')}


def parse_arguments(argv=None):
    parser = argparse.ArgumentParser(description='MNIST with torch.distributed', formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    add = parser.add_argument
    add('--backend', default='gloo', choices=['gloo', 'mpi', 'nccl', 'muster'], help='what the ranks talk through')
    add('--no-cuda', action='store_true', help='stay on the CPU even where there is a GPU')
    add('--rank', type=int, help='this process, 0 to world size - 1 (default: $RANK)')
    add('--world-size', type=int, help='how many processes train together (default: $WORLD_SIZE)')
    add('--init-method', help='where the ranks meet, such as file:///tmp/torchsharedfile (default: env://)')
    add('--training-data', metavar='DIR', help='folder of the IDX files (default: the places of Debian and torchvision)')
    add('--epochs', type=int, default=1)
    add('--batch-size', type=int, default=64, help='images per step: of each rank, or of all together with --scaling strong')
    add('--test-batch-size', type=int, default=1000)
    add('--lr', type=float, default=0.01, help='learning rate')
    add('--momentum', type=float, default=0.5)
    add('--seed', type=int, default=1)
    add('--log-interval', type=int, default=10, metavar='STEPS', help='steps between two lines of loss')
    add('--save-model', action='store_true', help='rank 0 saves DIR/mnist_cnn.pt at the end of each epoch')
    add('--dir', type=pathlib.Path, default='.', help='where the model goes')
    add('--average', default='ddp', choices=['ddp', 'hand'], help='who averages the gradients: DistributedDataParallel or this script')
    add('--scaling', default='weak', choices=['weak', 'strong'], help='weak: more ranks see more images per step; strong: the step stays')
    add('--scale-lr', action='store_true', help='learning rate in proportion to the effective batch size')
    add('--images', type=int, metavar='N', help='train on the first N images only')
    add('--test-images', type=int, metavar='N', help='judge by the first N test images only')
    return parser.parse_args(argv)


# ---------------------------------------------------------------------------------------------------------------- data

def read_idx(path):
    """Returns the array of an IDX file (http://yann.lecun.com/exdb/mnist): 0, 0, type 8 = bytes, rank, the sizes, the bytes."""
    with (gzip.open if path.suffix == '.gz' else open)(path, 'rb') as file:
        data = bytearray(file.read())
    rank = data[3] if len(data) > 3 and data[:3] == b'\0\0\x08' else 0
    start = 4 + 4 * rank
    shape = [int.from_bytes(data[i:i + 4], 'big') for i in range(4, min(start, len(data)), 4)]
    if rank == 0 or len(data) != start + math.prod(shape):
        sys.exit(f'mnist.py: {path} is not an IDX file of bytes, or is cut off ({len(data)} bytes)')
    return torch.frombuffer(data, dtype=torch.uint8, offset=start).reshape(shape)


def find_file(folder, name):
    return next((path for path in (folder / name, folder / f'{name}.gz') if path.is_file()), None)


def find_data(given):
    for place in [given] if given else PLACES:
        if all(find_file(pathlib.Path(place), name) for names in PARTS.values() for name in names):
            return pathlib.Path(place)
    wanted = ', '.join(name for names in PARTS.values() for name in names)
    if given:
        sys.exit(f'mnist.py: --training-data {given} lacks one of {wanted} (each may end in .gz)')
    sys.exit('mnist.py: no training data here; run:  apt-get install dataset-fashion-mnist\n'
             f'or give a folder that holds {wanted} by --training-data DIR')


def load_part(folder, part, limit):
    images, labels = (read_idx(find_file(folder, name)) for name in PARTS[part])
    if images.dim() != 3 or labels.dim() != 1 or len(images) != len(labels):
        sys.exit(f'mnist.py: {folder}: the {part} images {list(images.shape)} and labels {list(labels.shape)} do not fit together')
    return images[:limit], labels[:limit].long()


# --------------------------------------------------------------------------------------------------------------- ranks

def ranks_on_this_machine(args, world):
    """Returns the number of ranks on this machine: all if they meet at a local address or file; on a cluster those of the pod."""
    address = os.environ.get('MASTER_ADDR', '')
    if args.init_method:
        local = args.init_method.startswith('file:') or '//127.' in args.init_method or '//localhost' in args.init_method
    else:
        local = address.startswith('127.') or address in ('localhost', '::1')
    return world if local else int(os.environ.get('LOCAL_WORLD_SIZE', 1))


def join_group(args):
    """Joins the process group; returns (rank, world size). With one rank there is no group."""
    rank = args.rank if args.rank is not None else int(os.environ.get('RANK', 0))
    world = args.world_size if args.world_size is not None else int(os.environ.get('WORLD_SIZE', 1))
    if not 0 <= rank < world:
        sys.exit(f'mnist.py: rank {rank} is not below world size {world}: give both --rank and --world-size')
    if world == 1:
        return 0, 1
    if not args.init_method and 'MASTER_ADDR' not in os.environ:
        sys.exit('mnist.py: where do the ranks meet? Give --init-method file:///tmp/torchsharedfile, or set MASTER_ADDR and MASTER_PORT')
    check_backend(args.backend)
    print(f'Using distributed PyTorch with {args.backend} backend', flush=True)
    dist.init_process_group(args.backend, init_method=args.init_method or 'env://', rank=rank, world_size=world)
    return rank, world


def check_backend(name):
    if name == 'muster':
        import muster.torch  # noqa: F401  registers the backend
        return
    there = {'gloo': getattr(dist, 'is_gloo_available', lambda: True)(), 'mpi': dist.is_mpi_available(), 'nccl': dist.is_nccl_available()}
    if not there[name]:
        have = ', '.join(key for key, value in there.items() if value)
        sys.exit(f'mnist.py: this torch {torch.__version__} was built without {name}; it has {have}: give --backend {have.split(",")[0]}')
    if name == 'nccl' and not torch.cuda.is_available():
        sys.exit('mnist.py: nccl needs a GPU and there is none: give --backend gloo')


def average_by_hand(model, world):
    """Computes the mean of the gradients of all ranks, as DistributedDataParallel does during backward()."""
    gradients = [p.grad for p in model.parameters()]
    flat = torch.cat([g.reshape(-1) for g in gradients])
    dist.all_reduce(flat)
    flat /= world
    for gradient, mean in zip(gradients, flat.split([g.numel() for g in gradients])):
        gradient.copy_(mean.view_as(gradient))


def check_same_weights(model, world):
    """Compares the ranks' weights, because without averaging each rank would train its own model without notice. Returns the digest."""
    flat = torch.cat([p.detach().reshape(-1).cpu() for p in model.parameters()])
    digest = hashlib.sha256(bytes(flat.view(torch.uint8).tolist())).digest()
    if world > 1:
        mine = torch.tensor(list(digest), dtype=torch.uint8, device=next(model.parameters()).device)
        theirs = [torch.empty_like(mine) for _ in range(world)]
        dist.all_gather(theirs, mine)
        if any(not torch.equal(mine, other) for other in theirs):
            dist.destroy_process_group()  # otherwise Gloo's threads may abort a rank that ends
            sys.exit('mnist.py: the ranks hold different weights: the gradients were not averaged')
    return digest.hex()


# ------------------------------------------------------------------------------------------------------------ training

class Plan:
    """Which images each rank sees, and the learning rate."""

    def __init__(self, args, images, world):
        if args.scaling == 'strong' and args.batch_size % world:
            sys.exit(f'mnist.py: --scaling strong: {world} ranks cannot share a batch of {args.batch_size} equally')
        self.images = images
        self.batch = args.batch_size // world if args.scaling == 'strong' else args.batch_size
        self.effective = self.batch * world
        self.steps = math.ceil(math.ceil(images / world) / self.batch)
        self.proportional = args.lr * self.effective / args.batch_size
        self.lr = self.proportional if args.scale_lr else args.lr

    def __str__(self):
        ranks = self.effective // self.batch
        return (f'effective batch size {self.effective} ({self.batch} x {ranks} ranks), {self.steps} steps per epoch, '
                f'{self.images} images per epoch, learning rate {self.lr:g} (in proportion: {self.proportional:g})')


def make_network(height, width, classes):
    flat = 50 * (((height - 4) // 2 - 4) // 2) * (((width - 4) // 2 - 4) // 2)
    return nn.Sequential(
        nn.Conv2d(1, 20, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(20, 50, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(flat, 500), nn.ReLU(), nn.Linear(500, classes))


def pixels(images, device):
    """Converts bytes to numbers around 0, with a deviation of about 1."""
    return (images.to(device).float().unsqueeze(1) / 255 - 0.3) / 0.35


def train_epoch(args, epoch, model, optimizer, data, plan, rank, world, device):
    images, labels = data
    sampler = DistributedSampler(range(len(images)), world, rank, seed=args.seed)
    sampler.set_epoch(epoch)
    model.train()
    start = time.monotonic()
    for step, chosen in enumerate(torch.tensor(list(sampler)).split(plan.batch)):
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(pixels(images[chosen], device)), labels[chosen].to(device))
        loss.backward()
        if world > 1 and args.average == 'hand':
            average_by_hand(model, world)
        optimizer.step()
        if rank == 0 and step % args.log_interval == 0:
            done = step * plan.effective
            print(f'Train Epoch: {epoch} [{done}/{len(images)} ({100 * step / plan.steps:.0f}%)]\tloss={loss.item():.4f}', flush=True)
    if rank == 0:
        seconds = time.monotonic() - start
        print(f'epoch {epoch}: {len(images)} images in {seconds:.1f} s, {len(images) / seconds:.0f} samples/s', flush=True)


@torch.no_grad()
def accuracy(args, model, data, rank, world, device):
    """Returns the accuracy; each rank tests its share of the test images."""
    model.eval()
    images, labels = data[0][rank::world], data[1][rank::world]
    right = torch.zeros(1, device=device)
    for x, y in zip(images.split(args.test_batch_size), labels.split(args.test_batch_size)):
        right += (model(pixels(x, device)).argmax(1) == y.to(device)).sum()
    if world > 1:
        dist.all_reduce(right)
    return right.item() / len(data[0])


def save(model, folder):
    """Writes the whole file or none: a rank that is killed here leaves no incomplete model under this name."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / 'mnist_cnn.pt'
    torch.save(model.state_dict(), f'{path}.part')
    os.replace(f'{path}.part', path)
    print(f'model saved: {path}', flush=True)


def train(args, rank, world):
    cuda = torch.cuda.is_available() and not args.no_cuda
    device = torch.device('cuda', int(os.environ.get('LOCAL_RANK', 0))) if cuda else torch.device('cpu')
    if 'OMP_NUM_THREADS' not in os.environ:
        torch.set_num_threads(max(1, len(os.sched_getaffinity(0)) // ranks_on_this_machine(args, world)))
    folder = find_data(args.training_data)
    training, test = load_part(folder, 'train', args.images), load_part(folder, 'test', args.test_images)
    plan = Plan(args, len(training[0]), world)
    if rank == 0:
        print(f'{folder}: {plan}', flush=True)

    torch.manual_seed(args.seed)  # the same initial weights on all ranks; only DistributedSampler makes the ranks differ
    network = make_network(*training[0].shape[1:], int(training[1].max()) + 1).to(device)
    model = DistributedDataParallel(network) if world > 1 and args.average == 'ddp' else network
    optimizer = torch.optim.SGD(model.parameters(), lr=plan.lr, momentum=args.momentum)
    for epoch in range(1, args.epochs + 1):
        train_epoch(args, epoch, model, optimizer, training, plan, rank, world, device)
        digest = check_same_weights(network, world)
        right = accuracy(args, network, test, rank, world, device)
        if rank == 0:
            print(f'accuracy={right:.4f}', flush=True)
            if args.save_model:
                save(network, args.dir)
    if rank == 0:
        print(f'weights equal on {world} ranks, sha256 {digest[:16]}', flush=True)


def main():
    args = parse_arguments()
    rank, world = join_group(args)
    train(args, rank, world)
    if world > 1:
        dist.barrier()
        dist.destroy_process_group()


if __name__ == '__main__':
    main()
