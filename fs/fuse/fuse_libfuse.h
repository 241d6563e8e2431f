#pragma once

// libfuse with the one API version that all of us must ask for: another one
// changes the layout of the structures.
#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>
