# Installs fedrun as a CMake package: find_package(fedrun) gives fedrun::fedrun and the single libraries.
include(CMakePackageConfigHelpers)

# What a user's program links to get everything in this build.
add_library(fedrun_all INTERFACE)
add_library(fedrun::fedrun ALIAS fedrun_all)
set_target_properties(fedrun_all PROPERTIES EXPORT_NAME fedrun)
get_property(libraries GLOBAL PROPERTY FEDRUN_LIBRARIES)
list(REMOVE_ITEM libraries fedrun_launcher)
target_link_libraries(fedrun_all INTERFACE ${libraries})

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/fedrun")
install(TARGETS ${libraries} fedrun_all EXPORT fedrun ARCHIVE)
install(EXPORT fedrun NAMESPACE fedrun:: DESTINATION ${package_dir} FILE fedrunTargets.cmake)
install(DIRECTORY src/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/fedrun
  FILES_MATCHING PATTERN "*.h" PATTERN launcher EXCLUDE PATTERN "*-inl.h" EXCLUDE)

configure_package_config_file(cmake/fedrunConfig.cmake.in "${PROJECT_BINARY_DIR}/fedrunConfig.cmake"
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file("${PROJECT_BINARY_DIR}/fedrunConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/fedrunConfig.cmake" "${PROJECT_BINARY_DIR}/fedrunConfigVersion.cmake"
  cmake/FindHDF5C.cmake cmake/FindLibTorch.cmake cmake/FindNCCL.cmake DESTINATION ${package_dir})
