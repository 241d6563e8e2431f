# The library `policy`, from the target `support` and txfs_library.

# Of toml++ only the headers: each library that a command loads delays it.
find_path(TOML_INCLUDE toml++/toml.h REQUIRED)

file(GLOB POLICY_SOURCES CONFIGURE_DEPENDS policy/*.cc)
set(BUILTIN_RULES policy/default.toml policy/commands.toml policy/commands_services.toml
                  policy/commands_data.toml policy/commands_machine.toml)
file(READ policy/default.toml TXFS_DEFAULT_POLICY)
file(READ policy/commands.toml TXFS_COMMANDS)
file(READ policy/commands_services.toml TXFS_SERVICE_COMMANDS)
file(READ policy/commands_data.toml TXFS_DATA_COMMANDS)
file(READ policy/commands_machine.toml TXFS_MACHINE_COMMANDS)
configure_file(policy/builtin.cc.in policy/builtin.cc @ONLY)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${BUILTIN_RULES})

# To parse the built-in rules takes longer than all else before a command runs.
add_executable(freeze_rules policy/freeze/freeze_rules.cc policy/node.cc policy/toml.cc)
target_link_libraries(freeze_rules PRIVATE support)
target_include_directories(freeze_rules SYSTEM PRIVATE ${TOML_INCLUDE})
set(FROZEN_RULES ${PROJECT_BINARY_DIR}/frozen/rules.cc)
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/frozen)
add_custom_command(
  OUTPUT ${FROZEN_RULES}
  COMMAND freeze_rules ${FROZEN_RULES} ${BUILTIN_RULES}
  DEPENDS freeze_rules ${BUILTIN_RULES}
  WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
# It is made by the build, and not yet there for what only reads the sources.
set_source_files_properties(${FROZEN_RULES} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)

txfs_library(policy ${POLICY_SOURCES} ${PROJECT_BINARY_DIR}/policy/builtin.cc ${FROZEN_RULES})
target_link_libraries(policy PUBLIC support)
target_include_directories(policy SYSTEM PRIVATE ${TOML_INCLUDE})
