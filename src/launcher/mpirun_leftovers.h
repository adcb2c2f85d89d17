// What Open MPI leaves on a host when it is killed: its working directory and its shared memory.
#pragma once

#include <filesystem>
#include <functional>
#include <vector>

namespace fedrun::launcher {

// The files and directories of this rank's job, from the variables that Open MPI gives its ranks. Only such as bear the
// names that Open MPI gives: nothing else can be meant, whatever the variables say.
std::vector<std::filesystem::path> mpirun_leftovers(const std::function<const char*(const char* name)>& variable);

// Removes them, should they exist. To be called when mpirun is dead, and the rank as well.
void remove_mpirun_leftovers();

}  // namespace fedrun::launcher
