#pragma once

#include "fs/base/base_directory.h"
#include "journal/check.h"
#include "journal/support/result.h"

namespace txfs {

/// Checks that inodes, names, content and attributes form a consistent tree
/// (docs/design.md, "Tree"). `base` gives the hard links of base objects.
/// Without it, and for objects that changed since, the check of link counts
/// only has bounds.
void CheckTree(const Image& image, const BaseDirectory* base,
               Findings findings);

/// Whether a tree can be built from `image` and served. EBADMSG, with the first
/// problem: for example a name without an inode, a directory inside itself, or
/// content of a directory. Wrong link counts and unreachable inodes are
/// accepted.
Status CheckServable(const Image& image);

}  // namespace txfs
