#pragma once

#include <string>
#include <string_view>

namespace txfs {

/// A path that changed on both sides since the transaction first touched it.
struct Conflict {
  std::string path;    ///< in the base
  std::string reason;  ///< what the base did: "changed", "deleted", ...
  std::string ours;    ///< what the transaction did: "modified", ...; empty
                       ///< without a transaction
  std::string note;  ///< why the conflict remains, or what to do; may be empty

  bool operator==(const Conflict&) const = default;
};

/// The reason and note of an object that this user may not look at.
inline constexpr const char* kClosed = "closed";
inline constexpr const char* kClosedNote = "this user may not look at it";

/// The note of a conflict in a file that has conflict markers.
inline constexpr std::string_view kHasMarkers = "has conflict markers now";

}  // namespace txfs
