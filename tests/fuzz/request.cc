// What arrives at the daemon's control socket, descriptors included: each
// request is answered, with frames that a client can read.

#include <fcntl.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "cli/daemon/approvals.h"
#include "cli/protocol/dispatcher.h"
#include "cli/protocol/framing.h"
#include "tests/cli/fake_workspace.h"
#include "tests/cli/temp_tree.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/stream.h"

namespace txfs::cli {
namespace {

using fuzz::Demand;

/// A workspace that has something of everything.
std::unique_ptr<FakeWorkspace> MakeWorkspace(const std::string& directory) {
  UniqueFd dir(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  auto store = Store::Open(std::move(dir), directory, "/w");
  Demand(store.has_value(), "there is a store");
  auto workspace = std::make_unique<FakeWorkspace>(std::move(*store));
  workspace->base["a"] = "content";
  workspace->vault["v"] = "content";
  workspace->files.files[Ino{7}] = "content";
  workspace->past[Ino{7}] = "content";
  NetChange change;
  change.path = "odd\xff";
  change.after.emplace();
  workspace->changes.push_back(change);
  LogEntry entry{.lsn = Lsn{1}, .change = {}};
  entry.change.path = "a";
  workspace->log.push_back(entry);
  return workspace;
}

FakeWorkspace& TheWorkspace() {
  static const TempTree tree;
  static const std::unique_ptr<FakeWorkspace> workspace =
      MakeWorkspace(tree.path());
  return *workspace;
}

/// In which nothing waits.
Approvals& TheApprovals() {
  static Approvals approvals("/m", "/w", [] { return std::string("1"); });
  return approvals;
}

/// As the daemon does.
Status Answer(Dispatcher& dispatcher, const Json& request,
              const FrameSink& sink) {
  if (!Approvals::IsAsked(request)) return dispatcher.Handle(request, sink);
  return TheApprovals().Handle(request, sink, ::getpid());
}

void Serve(std::string_view bytes) {
  const UniqueFd stream = fuzz::StreamOf(bytes, bytes.size() % 4);
  if (!stream.valid()) return;
  Dispatcher dispatcher(TheWorkspace(), {.pid = 1, .mountpoint = "/m"});
  for (;;) {
    const auto frame = ReadFrame(stream.get(), kRequestMax);
    if (!frame || !*frame) return;
    size_t last = 0;
    const auto check = [&](const Frame& reply) -> Status {
      const Json read = Json::parse(Dump(reply.header), nullptr, false);
      Demand(read.is_object(), "a reply is an object");
      if (!GetBool(read, "more")) ++last;
      return {};
    };
    const Status answered = Answer(dispatcher, (*frame)->header, check);
    Demand(answered.has_value() && last == 1, "a request has one answer");
  }
}

void Run(std::string_view bytes) {
  std::ignore = TheWorkspace();
  std::ignore = TheApprovals();
  const size_t before = fuzz::CountDescriptors();
  Serve(bytes);
  Demand(fuzz::CountDescriptors() == before, "no descriptor is left open");
}

}  // namespace
}  // namespace txfs::cli

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  txfs::cli::Run(txfs::fuzz::TextOf(data, size));
  return 0;
}
