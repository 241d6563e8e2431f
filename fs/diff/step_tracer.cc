#include "fs/diff/step_tracer.h"

#include <algorithm>
#include <ranges>
#include <string_view>
#include <utility>

#include "fs/base/base_directory.h"
#include "fs/vault/vaults.h"

namespace txfs {

std::set<std::string> TracedObject::AfterNames() const {
  std::set<std::string> names;
  for (const Spot& spot : after) {
    if (!IsKeeping(spot)) names.insert(spot.path);
  }
  return names;
}

Spot At(const Spot& spot, std::string path) {
  return {spot.vault, std::move(path), spot.mount};
}

StepTracer::StepTracer() {
  base_->before.insert("");
  objects_.push_back(base_);
}

void StepTracer::Trace(const CommitSteps& steps) {
  for (const CommitStep& step : steps) Do(step);
  Locate(*base_, Spot::Base(""));
  for (const auto& [mount, vault] : vaults_) {
    Locate(*vault, Spot::Vault("", mount));
  }
}

void StepTracer::Do(const CommitStep& step) {
  switch (step.kind) {
    case StepKind::kMove: {
      TracedPtr object = Find(step.from, 0);
      PairBySlot(step, object);
      Entry(step.from) = nullptr;
      Entry(step.to) = std::move(object);
      return;
    }
    case StepKind::kExchange: {
      TracedPtr fresh = Find(step.from, 0);
      TracedPtr old = Find(step.to, 0);
      replaced_[fresh.get()] = old;
      Entry(step.from) = std::move(old);
      Entry(step.to) = std::move(fresh);
      return;
    }
    case StepKind::kLink: {
      TracedPtr object = Find(step.from, step.ino);
      Entry(step.to) = std::move(object);
      return;
    }
    case StepKind::kUnlink:
      Find(step.from, step.ino);
      Find(step.to, step.ino);
      Entry(step.to) = nullptr;
      return;
    case StepKind::kPatch:
      Find(step.to, step.ino)->old_bytes = step.before;
      return;
    case StepKind::kAttributes: {
      const TracedPtr object = step.set_after ? Find(step.to, 0) : Origin(step);
      if (!object) return;
      object->set_before = step.set_before;
      object->set_after = step.set_after;
      return;
    }
  }
}

TracedPtr StepTracer::Origin(const CommitStep& step) const {
  const auto found = by_origin_.find(step.from.path);
  return found == by_origin_.end() ? nullptr : found->second;
}

/// What was moved and what took its place are never in one slot, but one
/// leads to the other.
void StepTracer::PairBySlot(const CommitStep& step, const TracedPtr& object) {
  // Only files are replaced, and only directories stay beside their place.
  if (!step.from.vault && !step.to.vault) return;
  const std::string& slot = step.to.vault ? step.to.path : step.from.path;
  if (!IsSlot(VaultSlot::kMoving, slot) && !IsSlot(VaultSlot::kStaged, slot)) {
    return;
  }
  TracedPtr& out = taken_out_[MovingSlotOf(slot)];
  if (step.to.vault) {
    out = object;
  } else if (out && out != object &&
             out->origin.vault != object->origin.vault) {
    replaced_[object.get()] = out;
  }
}

TracedPtr& StepTracer::Root(const Spot& spot) {
  if (!spot.vault) return base_;
  TracedPtr& root = vaults_[spot.mount];
  if (!root) {
    root = std::make_shared<TracedObject>(
        TracedObject{.origin = Spot::Vault("", spot.mount)});
  }
  return root;
}

TracedPtr& StepTracer::Entry(const Spot& spot) {
  if (spot.path.empty()) return Root(spot);
  const TracedPtr parent =
      Find(At(spot, std::string(ParentPath(spot.path))), 0);
  return parent->children[std::string(BaseName(spot.path))];
}

TracedPtr StepTracer::Find(const Spot& spot, uint64_t ino) {
  TracedPtr at = Root(spot);
  // No recursion: a path may be longer than the stack is deep.
  for (std::string_view rest = spot.path; !rest.empty();) {
    const size_t slash = std::min(rest.find('/'), rest.size());
    const std::string name(rest.substr(0, slash));
    rest.remove_prefix(std::min(slash + 1, rest.size()));
    at = Child(at, name, rest.empty() ? ino : 0);
  }
  return at;
}

TracedPtr StepTracer::Child(const TracedPtr& parent, const std::string& name,
                            uint64_t ino) {
  const auto known = parent->children.find(name);
  if (known != parent->children.end() && known->second) {
    if (ino != 0) by_ino_.try_emplace(ino, known->second);
    return known->second;
  }
  const Spot origin = At(parent->origin, JoinPath(parent->origin.path, name));
  TracedPtr object = ino != 0 ? by_ino_[ino] : nullptr;
  if (!object) {
    object = std::make_shared<TracedObject>(TracedObject{.origin = origin});
    objects_.push_back(object);
    if (ino != 0) by_ino_[ino] = object;
  }
  if (!IsKeeping(origin)) {
    object->before.insert(origin.path);
    by_origin_.try_emplace(origin.path, object);
  }
  parent->children[name] = object;
  return object;
}

void StepTracer::Locate(TracedObject& top, const Spot& spot) {
  std::vector<std::pair<TracedObject*, Spot>> waiting{{&top, spot}};
  while (!waiting.empty()) {
    auto [object, place] = std::move(waiting.back());
    waiting.pop_back();
    for (const auto& [name, child] : object->children | std::views::reverse) {
      if (!child) continue;
      waiting.emplace_back(child.get(), At(place, JoinPath(place.path, name)));
    }
    object->after.push_back(std::move(place));
  }
}

}  // namespace txfs
