// Everything that a program which trains needs, in one include.
#pragma once

#include <fedrun/collectives/communicator.h>
#include <fedrun/core/error.h>
#include <fedrun/core/log.h>
#include <fedrun/core/version.h>
#include <fedrun/data/image_dataset.h>
#include <fedrun/data/mnist.h>
#include <fedrun/data/synthetic_digits.h>
#include <fedrun/models/convnet.h>
#include <fedrun/models/mlp.h>
#include <fedrun/models/registry.h>
#include <fedrun/models/resnet.h>
#include <fedrun/sampler/distributed_sampler.h>
#include <fedrun/train/broadcast.h>
#include <fedrun/train/convert_sync_batch_norm.h>
#include <fedrun/train/distributed_optimizer.h>
#include <fedrun/train/lars.h>
#include <fedrun/train/lr_schedule.h>
#include <fedrun/train/progress.h>
#include <fedrun/train/session.h>
#include <fedrun/train/sync_batch_norm.h>
#include <fedrun/train/tensor_buffer.h>
#include <fedrun/train/tensor_collectives.h>
