"""Runs `elasticdl evaluate` and `elasticdl predict` with the network of mnist_pytorch.py: the workers share the pictures.

MUSTER_TASK is the task, VALIDATION_DATA or PREDICTION_DATA the place of the pictures (folders of pictures, one per label), and
CHECKPOINT_DIR_FOR_INIT the folder in which `mnist_pytorch --output` has saved model.pt. Evaluation prints the loss and the accuracy over all
pictures; prediction writes a line for each picture into predictions.csv in --output.
"""
import argparse
import os
import sys

import torch

from model_zoo.mnist.mnist_pytorch import ElasticDataset, Net, find_images, measure
from muster.elastic import Shards, evaluate, predict


def load(folder, width):
    path = os.path.join(folder, 'model.pt')
    if not os.path.exists(path):
        sys.exit(f'mnist_tasks.py: there is no {path}; mnist_pytorch --output {folder} writes it')
    model = Net(width)
    model.load_state_dict(torch.load(path))
    return model


def run_evaluation(args, model):
    images = find_images(os.environ['VALIDATION_DATA'])
    with Shards(len(images), args.batch_size, task='evaluate', name='mnist_validation', sums=('correct', 'loss')) as shards:
        total = evaluate(model, shards, ElasticDataset(images, transpose=args.transpose), measure, num_workers=args.loader_workers)
    count = total['records']
    print(f'evaluation: average loss {total["loss"] / count:.4f}, accuracy {total["correct"] / count:.4f} '
          f'({total["correct"]:.0f} of {count})', flush=True)


def run_prediction(args, model):
    images = find_images(os.environ['PREDICTION_DATA'])

    def rows(model, batch, records):
        chances, labels = model(batch[0]).exp().max(dim=1)
        return [[images[record][0], label, f'{chance:.4f}'] for record, label, chance in zip(records, labels.tolist(), chances.tolist())]

    with Shards(len(images), args.batch_size, task='predict', name='mnist_prediction') as shards:
        path = predict(model, shards, ElasticDataset(images, transpose=args.transpose), rows, args.output, ['picture', 'label', 'chance'],
                       num_workers=args.loader_workers)
    print(f'prediction: {len(images)} pictures in {path}', flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument('--batch_size', type=int, default=64)
    parser.add_argument('--output', default='predictions', help='folder of predictions.csv, the same for all workers')
    parser.add_argument('--loader_workers', type=int, default=0, help='processes that read pictures')
    parser.add_argument('--transpose', action='store_true', help='as it was trained')
    parser.add_argument('--width', type=int, default=32, help='of the network, as it was trained')
    args = parser.parse_args()
    task = os.environ.get('MUSTER_TASK')
    if task not in ('evaluation', 'prediction'):
        sys.exit('mnist_tasks.py: MUSTER_TASK is evaluation or prediction: run it by elasticdl evaluate or elasticdl predict')
    torch.set_num_threads(1)
    model = load(os.environ['CHECKPOINT_DIR_FOR_INIT'], args.width)
    (run_evaluation if task == 'evaluation' else run_prediction)(args, model)


if __name__ == '__main__':
    main()
