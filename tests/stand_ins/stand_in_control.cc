// One Control for both libraries, and the end of the program, which it decides about.
#include "stand_ins/stand_in_control.h"

namespace stand_in {

Control& control() {
  static auto* the_control = new Control;
  return *the_control;
}

namespace {

// Leaks and violations make the program fail, whatever it thinks of itself.
struct AtExit {
  ~AtExit() {
    const std::string live = control().describe_live();
    if (!live.empty()) control().report("still alive at the end: " + live);
    if (control().violations() != 0) std::_Exit(97);
  }
} at_exit;

}  // namespace

}  // namespace stand_in
