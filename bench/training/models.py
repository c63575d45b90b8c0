"""The two models of the benchmark, written here so that torchvision is not needed."""
from torch import nn


def mnist_cnn():
    """The CNN of PyTorch's MNIST example, 1.2 M parameters, 28 x 28 grey images."""
    return nn.Sequential(
        nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(9216, 128), nn.ReLU(), nn.Linear(128, 10))


class Block(nn.Module):
    """Two 3 x 3 convolutions with a shortcut (He et al. 2015, figure 2)."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs))
        self.short = nn.Sequential()
        if stride != 1 or inputs != outputs:
            self.short = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))
        self.end = nn.ReLU()

    def forward(self, x):
        return self.end(self.body(x) + self.short(x))


def resnet18():
    """ResNet-18 for CIFAR's shape, 11.2 M parameters, 32 x 32 colour images."""
    layers = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    inputs = 64
    for outputs, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [Block(inputs, outputs, stride), Block(outputs, outputs, 1)]
        inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


MODELS = {'mnist-cnn': (mnist_cnn, (1, 28, 28)), 'resnet18': (resnet18, (3, 32, 32))}
