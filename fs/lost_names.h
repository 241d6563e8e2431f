#pragma once

#include "fs/base_directory.h"
#include "fs/tree.h"

namespace txfs {

/// Files of several names whose noted one the base has taken away are noted by
/// another one that it still has, and to be seen there: one that the
/// transaction does not hide, if there is one. For what has no known name left
/// the whole base is read, once as long as nothing is found.
void NoteOtherNames(Tree& tree, const BaseDirectory& base);

}  // namespace txfs
