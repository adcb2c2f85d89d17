// A collective that has been started and may not have finished.
#pragma once

namespace fedrun {

// Used by the thread that started the operation. The buffers stay the operation's until wait() returns or done() is
// true; destroying a Work waits, unless an exception is on its way, when the other ranks may never answer.
class Work {
 public:
  virtual ~Work() = default;

  // True once the result is in place; never blocks.
  virtual bool done() = 0;

  // Returns when the result is in place; throws what went wrong.
  virtual void wait() = 0;

  // Of elements on a GPU: returns when the stream, a cudaStream_t, has been told to wait for the result, which is in
  // place for all that is put on the stream afterwards. What goes wrong later is thrown by the next operation on the
  // group's GPUs. Elements on the CPU are waited for.
  virtual void wait_in_stream(void* /*stream*/) { wait(); }
};

}  // namespace fedrun
