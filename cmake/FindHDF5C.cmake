# Finds the C library of HDF5, as Debian lays it out or plainly, also in HDF5C_ROOT. CMake's own FindHDF5 asks a C compiler,
# which fedrun does not need, and links all that a static HDF5 would want.
# Result: HDF5C_FOUND, HDF5C_VERSION and the target HDF5C::hdf5.
find_path(HDF5C_INCLUDE_DIR hdf5.h PATH_SUFFIXES hdf5/serial)
find_library(HDF5C_LIBRARY NAMES hdf5 hdf5_serial PATH_SUFFIXES hdf5/serial)

if(HDF5C_INCLUDE_DIR)
  file(STRINGS "${HDF5C_INCLUDE_DIR}/H5public.h" lines REGEX "#define H5_VERS_(MAJOR|MINOR|RELEASE) +[0-9]+")
  string(REGEX REPLACE "[^;]*MAJOR +([0-9]+)[^;]*;[^;]*MINOR +([0-9]+)[^;]*;[^;]*RELEASE +([0-9]+).*" "\\1.\\2.\\3"
    HDF5C_VERSION "${lines}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(HDF5C REQUIRED_VARS HDF5C_LIBRARY HDF5C_INCLUDE_DIR VERSION_VAR HDF5C_VERSION)
mark_as_advanced(HDF5C_INCLUDE_DIR HDF5C_LIBRARY)

if(HDF5C_FOUND AND NOT TARGET HDF5C::hdf5)
  add_library(HDF5C::hdf5 UNKNOWN IMPORTED)
  set_target_properties(HDF5C::hdf5 PROPERTIES IMPORTED_LOCATION "${HDF5C_LIBRARY}")
  target_include_directories(HDF5C::hdf5 SYSTEM INTERFACE "${HDF5C_INCLUDE_DIR}")
endif()
