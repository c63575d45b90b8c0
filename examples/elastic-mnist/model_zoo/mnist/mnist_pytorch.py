"""Trains a convolutional network on pictures in folders, one folder per label, with ElasticDL's API.

The script of ElasticDL's tutorial ("Train PyTorch Models using ElasticDL"): a Dataset that asks a RecordIndexService for its
records, and a controller that wraps the function of one batch. It runs as one of any number of workers around a coordinator
(MUSTER_COORDINATOR): `make demo-elastic` shows that. When an epoch ends each worker tests the model, as the tutorial does; the trained
model is evaluated once, by all workers together (muster.elastic.Shards), and the coordinator's log has the accuracy.

    python3 -m model_zoo.mnist.mnist_pytorch --batch_size 64 --num_epochs 1 \
        --training_data=data/mnist_png/training --validation_data=data/mnist_png/testing
"""
import argparse
import hashlib
import os
import sys

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, Dataset

from elasticai_api.common.data_shard_service import RecordIndexService
from elasticai_api.pytorch.controller import PyTorchAllReduceController
from elasticai_api.pytorch.optimizer import DistributedOptimizer
from muster.elastic import Shards, evaluate

try:
    from cv2 import imread
except ImportError:
    try:
        from PIL import Image

        def imread(path):
            return np.array(Image.open(path).convert('RGB'))
    except ImportError:
        from model_zoo.mnist import png

        def imread(path):
            with open(path, 'rb') as file:
                width, height, channels, pixels = png.decode(file.read())
            image = np.frombuffer(pixels, np.uint8).reshape(height, width, channels)
            return image if channels == 3 else np.repeat(image, 3, axis=2)


class Net(nn.Module):
    """The network, with 1,200,458 parameters. --width makes it narrower, for quick trials."""

    def __init__(self, width=32):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 3, 1)
        self.conv2 = nn.Conv2d(width, 2 * width, 3, 1)
        self.dropout1 = nn.Dropout(0.25)
        self.dropout2 = nn.Dropout(0.5)
        self.fc1 = nn.Linear(2 * width * 144, 4 * width)
        self.fc2 = nn.Linear(4 * width, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        x = self.dropout1(F.max_pool2d(x, 2))
        x = F.relu(self.fc1(torch.flatten(x, 1)))
        return F.log_softmax(self.fc2(self.dropout2(x)), dim=1)


class ElasticDataset(Dataset):
    def __init__(self, images, data_shard_service=None, transpose=False):
        """The dataset supports elastic training.

        Args:
            images: A list with tuples like (image_path, label_index).
            data_shard_service: that of the elastic controller, for elastic training.
            transpose: channels first by moving the axes. The tutorial reinterprets the memory instead, which mixes rows and
                channels; as that is one fixed bijection the network learns as well, but the curve is different.
        """
        self.data_shard_service = data_shard_service
        self._images = images
        self._transpose = transpose

    def __len__(self):
        if self.data_shard_service:
            # Set the maxsize because the size of dataset is not fixed when using dynamic sharding.
            return sys.maxsize
        return len(self._images)

    def __getitem__(self, index):
        if self.data_shard_service:
            index = self.data_shard_service.fetch_record_index()
        return self.read_image(index)

    def read_image(self, index):
        image_path, label = self._images[index]
        image = np.array(imread(image_path) / 255.0, np.float32)
        image = np.ascontiguousarray(image.transpose(2, 0, 1)) if self._transpose else image.reshape(3, 28, 28)
        return image, label


def find_images(folder):
    """Returns [(path, label)], as in torchvision.datasets.ImageFolder(folder).imgs."""
    if not os.path.isdir(folder):
        sys.exit(f'mnist_pytorch.py: {folder} is no folder; write_pictures.py beside this example writes one')
    labels = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir())
    return [(os.path.join(folder, label, name), number) for number, label in enumerate(labels)
            for name in sorted(os.listdir(os.path.join(folder, label)))]


def train_one_batch(model, optimizer, data, target):
    optimizer.zero_grad()
    output = model(data)
    loss = F.nll_loss(output, target)
    loss.backward()
    optimizer.step()
    return loss


def test(model, device, loader):
    model.eval()
    loss, correct, total = 0.0, 0, 0
    with torch.no_grad():
        for data, target in loader:
            output = model(data.to(device))
            loss += F.nll_loss(output, target.to(device), reduction='sum').item()
            correct += (output.argmax(dim=1).cpu() == target).sum().item()
            total += len(target)
    print(f'Test set: average loss: {loss / total:.4f}, accuracy: {correct}/{total} ({100 * correct / total:.2f} %)', flush=True)


def measure(model, images, labels):
    """Returns sums over a batch, in the order of Shards' sums."""
    output = model(images)
    return (output.argmax(dim=1) == labels).sum(), F.nll_loss(output, labels, reduction='sum')


def train(args):
    torch.manual_seed(args.seed)
    train_images, test_images = find_images(args.training_data), find_images(args.validation_data)
    if args.images:
        train_images = train_images[::max(1, len(train_images) // args.images)][:args.images]
    test_images = test_images[::max(1, len(test_images) // args.test_images)][:args.test_images]

    data_shard_service = RecordIndexService(
        batch_size=args.batch_size,
        dataset_size=len(train_images),
        num_epochs=args.num_epochs,
        shuffle=True,
        dataset_name='mnist_training_data',
    )
    train_dataset = ElasticDataset(train_images, data_shard_service, args.transpose)
    train_loader = DataLoader(dataset=train_dataset, batch_size=args.batch_size, num_workers=args.loader_workers)
    test_loader = DataLoader(dataset=ElasticDataset(test_images, transpose=args.transpose), batch_size=256)

    device = torch.device('cuda' if torch.cuda.is_available() and not args.no_cuda else 'cpu')
    model = Net(args.width).to(device)
    optimizer = optim.SGD(model.parameters(), lr=args.learning_rate)
    optimizer = DistributedOptimizer(optimizer, fixed_global_batch_size=True)
    scheduler = StepLR(optimizer, step_size=1, gamma=0.5)

    allreduce_controller = PyTorchAllReduceController(data_shard_service)
    allreduce_controller.set_broadcast_model(model)
    allreduce_controller.set_broadcast_optimizer(optimizer)
    # Use the elastic function to wrap the training function with a batch.
    elastic_train_one_batch = allreduce_controller.elastic_run(train_one_batch)

    # Created before training ends: the job is done only when this data set is, too.
    shards = Shards(len(test_images), 256, task='evaluate', name='mnist_validation', sums=('correct', 'loss'))
    epoch = 0
    with allreduce_controller.scope():
        for batch_idx, (data, target) in enumerate(train_loader):
            model.train()
            loss = elastic_train_one_batch(model, optimizer, data.to(device), target.to(device))
            if batch_idx % args.log_interval == 0:
                print(f'loss = {loss.item():.4f}, step = {batch_idx}', flush=True)
            new_epoch = allreduce_controller.get_current_epoch()
            if new_epoch > epoch:
                epoch = new_epoch
                # Set epoch of the scheduler
                scheduler.last_epoch = epoch - 1
                scheduler.step()
                if epoch < args.num_epochs:
                    test(model, device, test_loader)
    digest = hashlib.sha256()
    for value in model.state_dict().values():
        digest.update(value.cpu().contiguous().numpy().tobytes())
    print(f'weights sha256={digest.hexdigest()}', flush=True)
    if args.output:
        save(model, args.output)
    with shards:
        evaluate(model.cpu(), shards, test_loader.dataset, measure)


def save(model, folder):
    """Saves the model. Every worker has the same one, and the file is complete whichever worker writes it last."""
    os.makedirs(folder, exist_ok=True)
    mine = os.path.join(folder, f'model.{os.uname().nodename}.{os.getpid()}')
    torch.save(model.state_dict(), mine)
    os.replace(mine, os.path.join(folder, 'model.pt'))


def parse_arguments():
    parser = argparse.ArgumentParser(description='MNIST with ElasticDL\'s API', formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    add = parser.add_argument
    add('--batch_size', type=int, default=64)
    add('--num_epochs', type=int, default=1)
    add('--learning_rate', type=float, default=0.1)
    add('--training_data', required=True, help='folder of folders of pictures')
    add('--validation_data', required=True)
    add('--output', help='folder for the trained model, model.pt: mnist_tasks evaluates it, and predicts with it')
    add('--no_cuda', action='store_true')
    add('--loader_workers', type=int, default=2, help='processes that read pictures')
    add('--log_interval', type=int, default=10)
    add('--seed', type=int, default=1, help='of the first model')
    add('--transpose', action='store_true', help='channels first by moving the axes, not as the tutorial does it')
    add('--images', type=int, default=0, help='train on so many only (0: all)')
    add('--test_images', type=int, default=10_000)
    add('--width', type=int, default=32, help='of the network')
    return parser.parse_args()


if __name__ == '__main__':
    train(parse_arguments())
