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
#include <fedrun/sampler/distributed_sampler.h>
#include <fedrun/train/broadcast.h>
#include <fedrun/train/distributed_optimizer.h>
#include <fedrun/train/join_scope.h>
#include <fedrun/train/meter.h>
#include <fedrun/train/objects.h>
#include <fedrun/train/optimizer_state.h>
#include <fedrun/train/progress.h>
#include <fedrun/train/replica_check.h>
#include <fedrun/train/session.h>
#include <fedrun/train/tensor_buffer.h>
#include <fedrun/train/tensor_collectives.h>
