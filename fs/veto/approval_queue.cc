#include "fs/veto/approval_queue.h"

#include <algorithm>
#include <utility>

namespace txfs {

std::vector<ApprovalQueue::Grant> ApprovalQueue::GrantsOf(
    const ProcessIdentity& process, const Question& question) {
  std::vector<Grant> grants;
  for (const TouchedName& name : question.names) {
    grants.emplace_back(process, question.policy->hash(), question.rule->id,
                        static_cast<int>(name.effect), name.path, question.exe);
  }
  return grants;
}

bool ApprovalQueue::IsRemembered(const std::vector<Grant>& grants) const {
  for (const Grant& grant : grants) {
    if (!remembered_.contains(grant)) return false;
  }
  return true;
}

void ApprovalQueue::Remember(const std::vector<Grant>& grants) {
  for (const Grant& grant : grants) {
    // A process without a known PID cannot be recognized later.
    const bool known = std::get<ProcessIdentity>(grant).pid != 0;
    if (!known || !remembered_.insert(grant).second) continue;
    oldest_.push_back(grant);
    if (oldest_.size() <= limits_.remembered) continue;
    remembered_.erase(oldest_.front());
    oldest_.pop_front();
  }
}

ApprovalQueue::Answer ApprovalQueue::Ask(const Caller& caller,
                                         const Question& question) {
  Waiter waiter{.process = IdentifyProcess(static_cast<pid_t>(caller.pid)),
                .wait = caller.wait};
  const std::vector<Grant> grants = GrantsOf(waiter.process, question);
  SharedEntry entry;
  {
    const MutexLock lock(mutex_);
    if (IsRemembered(grants)) return Answer::kYes;
    if (pauses_ > 0) return Answer::kEnded;
    if (waiting_ >= limits_.waiting) return Answer::kFull;
    entry = Join(caller, question, waiter);
  }
  const bool may_wait =
      caller.wait == nullptr ||
      caller.wait->Begin([this, &waiter] { Interrupt(waiter); });
  if (may_wait) {
    const MutexLock lock(mutex_);
    Await(*entry, waiter);
  }
  if (may_wait && caller.wait != nullptr) caller.wait->End();
  const MutexLock lock(mutex_);
  const Answer answer = Leave(*entry, waiter);
  if (answer == Answer::kYes) Remember(grants);
  return may_wait ? answer : Answer::kFull;
}

ApprovalQueue::SharedEntry ApprovalQueue::Join(const Caller& caller,
                                               const Question& question,
                                               Waiter& waiter) {
  ++waiting_;
  for (const auto& [id, entry] : entries_) {
    if (entry->uid != caller.uid || entry->question != question) continue;
    entry->waiters.push_back(&waiter);
    return entry;
  }
  const auto timeout =
      question.policy->settings().ask_timeout.value_or(policy::kAskTimeout);
  auto entry =
      std::make_shared<Entry>(Entry{.id = next_id_++,
                                    .question = question,
                                    .uid = caller.uid,
                                    .asked = Clock::System().Now(),
                                    .deadline = Steady::now() + timeout,
                                    .waiters = {&waiter},
                                    .answer = {}});
  entries_.emplace(entry->id, entry);
  return entry;
}

void ApprovalQueue::Await(Entry& entry, const Waiter& waiter) {
  while (!entry.answer) {
    const auto now = Steady::now();
    if (now >= entry.deadline) return Settle(entry, Answer::kLate);
    if (waiter.signalled && waiter.wait->HasToEnd()) return;
    const auto until =
        waiter.signalled
            ? std::min(entry.deadline, now + LongWait::kSignalInterval)
            : entry.deadline;
    changed_.WaitFor(mutex_, until - now);
  }
}

ApprovalQueue::Answer ApprovalQueue::Leave(Entry& entry, const Waiter& waiter) {
  --waiting_;
  std::erase(entry.waiters, &waiter);
  if (entry.answer) return *entry.answer;
  if (entry.waiters.empty()) entries_.erase(entry.id);
  return Answer::kInterrupted;
}

void ApprovalQueue::Settle(Entry& entry, Answer answer) {
  entry.answer = answer;
  entries_.erase(entry.id);
  changed_.NotifyAll();
}

void ApprovalQueue::Interrupt(Waiter& waiter) {
  const MutexLock lock(mutex_);
  waiter.signalled = true;
  changed_.NotifyAll();
}

std::vector<ApprovalQueue::Item> ApprovalQueue::Pending() {
  const MutexLock lock(mutex_);
  std::vector<Item> items;
  for (const auto& [id, entry] : entries_) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        entry->deadline - Steady::now());
    Item& item = items.emplace_back(Item{.id = id,
                                         .question = entry->question,
                                         .uid = entry->uid,
                                         .asked = entry->asked,
                                         .left = left,
                                         .processes = {}});
    for (const Waiter* waiter : entry->waiters) {
      item.processes.push_back(waiter->process);
    }
  }
  return items;
}

bool ApprovalQueue::Reply(uint64_t id, bool yes) {
  const MutexLock lock(mutex_);
  const auto found = entries_.find(id);
  if (found == entries_.end()) return false;
  const SharedEntry entry = found->second;
  Settle(*entry, yes ? Answer::kYes : Answer::kNo);
  return true;
}

void ApprovalQueue::DenyAllLocked() {
  const auto entries = std::exchange(entries_, {});
  for (const auto& [id, entry] : entries) entry->answer = Answer::kEnded;
  changed_.NotifyAll();
}

void ApprovalQueue::DenyAll() {
  const MutexLock lock(mutex_);
  DenyAllLocked();
}

void ApprovalQueue::EndAll() {
  const MutexLock lock(mutex_);
  DenyAllLocked();
  remembered_.clear();
  oldest_.clear();
}

void ApprovalQueue::Suspend() {
  const MutexLock lock(mutex_);
  ++pauses_;
  DenyAllLocked();
}

void ApprovalQueue::Resume() {
  const MutexLock lock(mutex_);
  --pauses_;
}

}  // namespace txfs
