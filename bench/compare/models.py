"""The models of training_bench, for PyTorch."""
from torch import nn


def convnet():
    def block(channels_in, channels_out):
        return [nn.Conv2d(channels_in, channels_out, 5, padding=2), nn.BatchNorm2d(channels_out), nn.ReLU(), nn.MaxPool2d(2)]

    return nn.Sequential(*block(1, 16), *block(16, 32), nn.Flatten(), nn.Linear(7 * 7 * 32, 10))


def mlp():
    return nn.Sequential(
        nn.Flatten(), nn.Linear(784, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 10))


class Residual(nn.Module):
    """Some convolutions, each with BatchNorm, around which the input is added; the last has no ReLU of its own."""

    def __init__(self, channels_in, convolutions, stride):
        super().__init__()
        layers = []
        channels = channels_in
        for number, (channels_out, size, own_stride) in enumerate(convolutions):
            if number > 0:
                layers.append(nn.ReLU())
            layers += [nn.Conv2d(channels, channels_out, size, own_stride, size // 2, bias=False), nn.BatchNorm2d(channels_out)]
            channels = channels_out
        self.branch = nn.Sequential(*layers)
        self.shortcut = nn.Identity()
        if stride != 1 or channels != channels_in:
            self.shortcut = nn.Sequential(nn.Conv2d(channels_in, channels, 1, stride, bias=False), nn.BatchNorm2d(channels))

    def forward(self, images):
        return nn.functional.relu(self.branch(images) + self.shortcut(images))


def resnet(counts, bottleneck):
    """With the stem for 32×32 images."""
    expansion = 4 if bottleneck else 1
    layers = [nn.Conv2d(3, 64, 3, padding=1, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    channels_in = 64
    for stage, count in enumerate(counts):
        width = 64 << stage
        for number in range(count):
            stride = 2 if stage > 0 and number == 0 else 1
            if bottleneck:
                convolutions = [(width, 1, 1), (width, 3, stride), (4 * width, 1, 1)]
            else:
                convolutions = [(width, 3, stride), (width, 3, 1)]
            layers.append(Residual(channels_in, convolutions, stride))
            channels_in = width * expansion
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels_in, 10))


# name: (model, shape of a sample, samples per rank and step)
MODELS = {
    "convnet": (convnet, (1, 28, 28), 100),
    "mlp": (mlp, (1, 28, 28), 32),
    "resnet18": (lambda: resnet((2, 2, 2, 2), bottleneck=False), (3, 32, 32), 16),
    "resnet50": (lambda: resnet((3, 4, 6, 3), bottleneck=True), (3, 32, 32), 16),
}
