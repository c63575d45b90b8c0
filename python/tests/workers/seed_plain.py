"""The tutorial's model, data and schedule in a plain loop of torch, in one process: nothing of muster trains it.

Arguments: PICTURES BATCH EPOCHS WIDTH SEED…. Prints 'accuracy' and the share of test pictures that are classified correctly, once for each seed.
"""
import random
import sys

import numpy as np
import torch
from model_zoo.mnist.mnist_pytorch import ElasticDataset, Net, find_images, train_one_batch
from torch.optim.lr_scheduler import StepLR

pictures, batch, epochs, width, *seeds = sys.argv[1:]


def load(part):
    items = [item for item in ElasticDataset(find_images(f'{pictures}/{part}'))]
    return torch.from_numpy(np.stack([image for image, _ in items])), torch.tensor([label for _, label in items])


def train(seed, images, labels):
    torch.manual_seed(seed)
    model = Net(int(width))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = StepLR(optimizer, step_size=1, gamma=0.5)
    for _ in range(int(epochs)):
        order = list(range(len(images)))
        random.Random(seed).shuffle(order)
        for chosen in torch.tensor(order).split(int(batch)):
            train_one_batch(model, optimizer, images[chosen], labels[chosen])
        scheduler.step()
    return model.eval()


training, testing = load('training'), load('testing')
for seed in map(int, seeds):
    model = train(seed, *training)
    with torch.no_grad():
        right = (model(testing[0]).argmax(dim=1) == testing[1]).double().mean().item()
    print('accuracy', right, flush=True)
