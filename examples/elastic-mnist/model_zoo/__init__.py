"""Models to be trained by name: python -m model_zoo.mnist.mnist_pytorch."""
