# What `cmake --install` puts where. mount(8) looks for its helper in /sbin
# only, which is /usr/sbin: with another prefix than /usr a link is missing.
include(GNUInstallDirs)

install(TARGETS txfs RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

file(RELATIVE_PATH TXFS_FROM_SBIN "${CMAKE_INSTALL_FULL_SBINDIR}"
     "${CMAKE_INSTALL_FULL_BINDIR}/txfs")
file(CREATE_LINK "${TXFS_FROM_SBIN}" "${PROJECT_BINARY_DIR}/mount.fuse.txfs"
     SYMBOLIC)
install(FILES "${PROJECT_BINARY_DIR}/mount.fuse.txfs"
        DESTINATION ${CMAKE_INSTALL_SBINDIR})
install(CODE "set(TXFS_SBIN \"${CMAKE_INSTALL_SBINDIR}\")")
install(CODE [[
  get_filename_component(helper "${TXFS_SBIN}/mount.fuse.txfs" ABSOLUTE
                         BASE_DIR "${CMAKE_INSTALL_PREFIX}")
  file(REAL_PATH "$ENV{DESTDIR}${helper}" installed)
  file(REAL_PATH "$ENV{DESTDIR}/sbin/mount.fuse.txfs" found)
  if(NOT installed STREQUAL found)
    message(STATUS "mount(8) looks for its helper in /sbin only; "
                   "for `mount -t fuse.txfs` run: ln -sf ${helper} /sbin/")
  endif()
]])

find_program(SCDOC scdoc)
if(SCDOC)
  set(TXFS_MAN_SOURCE "${PROJECT_SOURCE_DIR}/docs/txfs.1.scd")
  set(TXFS_MAN_PAGE "${PROJECT_BINARY_DIR}/txfs.1")
  add_custom_command(
    OUTPUT "${TXFS_MAN_PAGE}"
    COMMAND sh -c "'${SCDOC}' < '${TXFS_MAN_SOURCE}' > '${TXFS_MAN_PAGE}'"
    DEPENDS "${TXFS_MAN_SOURCE}"
    VERBATIM)
  add_custom_target(man ALL DEPENDS "${TXFS_MAN_PAGE}")
  install(FILES "${TXFS_MAN_PAGE}" DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
else()
  message(STATUS "scdoc not found: the man page will not be built")
endif()

foreach(document IN ITEMS README.md LICENSE docs/design.md docs/format.md
                          docs/locking.md docs/control.md)
  install(FILES "${PROJECT_SOURCE_DIR}/${document}"
          DESTINATION ${CMAKE_INSTALL_DOCDIR} OPTIONAL)
endforeach()
