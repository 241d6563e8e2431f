#pragma once

// Includes libfuse with one API version. All files must use the same one:
// another version changes the layout of structures.
#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>
