"""Models that can be trained by their name: python -m model_zoo.mnist.mnist_pytorch."""
