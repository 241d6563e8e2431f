#pragma once

#include "fs/base/base_directory.h"
#include "journal/check.h"
#include "journal/support/result.h"

namespace txfs {

/// Checks that inodes, names, content and attributes make up a tree as the core
/// builds it (docs/design.md, "Tree"). `base`: for the links that are the
/// base's; without one, and where the base has changed since, they are only
/// checked as far as that goes.
void CheckTree(const Image& image, const BaseDirectory* base,
               Findings findings);

/// Whether a tree can be made of `image` and served: there are no names that
/// lead nowhere or in a circle, no content of what is no file, and so on; link
/// counts may be wrong. EBADMSG, with the first of what is wrong.
Status CheckServable(const Image& image);

}  // namespace txfs
