#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <array>
#include <cstring>
#include <future>
#include <random>
#include <thread>

#include "cli/daemon/control_server.h"
#include "cli/locate/reach_daemon.h"
#include "cli/locate/transactions.h"
#include "cli/output/text.h"
#include "cli/protocol/client.h"
#include "cli/protocol/runtime_dir.h"
#include "fake_workspace.h"
#include "journal/support/file.h"
#include "temp_tree.h"
#include "tests/repeat.h"

namespace txfs::cli {
namespace {

/// Two connected sockets.
struct SocketPair {
  SocketPair() {
    int fds[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0) {
      a.Reset(fds[0]);
      b.Reset(fds[1]);
    }
  }
  void Send(std::string_view bytes) const {
    EXPECT_EQ(::send(a.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  UniqueFd a, b;
};

std::string Prefixed(std::string_view text) {
  Bytes prefix;
  Encoder(prefix).Put(static_cast<uint32_t>(text.size()));
  return std::string(AsText(prefix)) + std::string(text);
}

TEST(FramingTest, CarriesHeaderAndPayload) {
  const SocketPair sockets;
  const Frame sent{.header = {{"a", 1}},
                   .payload = std::string("\0\xFF", 2),
                   .descriptor = {}};
  ASSERT_TRUE(WriteFrame(sockets.a.get(), sent));
  const auto got = ReadFrame(sockets.b.get(), kRequestMax);
  ASSERT_TRUE(got && *got);
  EXPECT_EQ((*got)->header["a"], 1);
  EXPECT_EQ((*got)->payload, sent.payload);
}

TEST(FramingTest, CarriesADescriptor) {
  const SocketPair sockets;
  auto null = OpenAt(AT_FDCWD, "/dev/null", O_RDONLY);
  ASSERT_TRUE(null);
  struct stat sent{};
  struct stat got{};
  ASSERT_EQ(::fstat(null->get(), &sent), 0);
  const Frame frame{.header = {{"a", 1}},
                    .payload = {},
                    .descriptor = std::make_shared<UniqueFd>(std::move(*null))};
  ASSERT_TRUE(WriteFrame(sockets.a.get(), frame));
  ASSERT_TRUE(WriteFrame(sockets.a.get(), Frame{}));
  const auto first = ReadFrame(sockets.b.get(), kRequestMax);
  ASSERT_TRUE(first && *first && (*first)->descriptor);
  ASSERT_EQ(::fstat((*first)->descriptor->get(), &got), 0);
  EXPECT_EQ(got.st_rdev, sent.st_rdev);
  const auto second = ReadFrame(sockets.b.get(), kRequestMax);
  ASSERT_TRUE(second && *second);
  EXPECT_FALSE((*second)->descriptor);
}

/// Sends `bytes` with two descriptors of `file`.
void SendWithTwo(int socket, std::string bytes, int file) {
  iovec piece{.iov_base = bytes.data(), .iov_len = bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(2 * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(2 * sizeof(int));
  const std::array<int, 2> files{file, file};
  std::memcpy(CMSG_DATA(rights), files.data(), sizeof files);
  ASSERT_EQ(::sendmsg(socket, &message, MSG_NOSIGNAL),
            static_cast<ssize_t>(bytes.size()));
}

TEST(FramingTest, ClosesDescriptorsThatNobodyAskedFor) {
  const SocketPair sockets;
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
  const UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  const std::string bytes = Prefixed(R"({"payload":3})") + "abc";
  // With the first bytes, and in the middle.
  SendWithTwo(sockets.a.get(), bytes.substr(0, 7), write_end.get());
  SendWithTwo(sockets.a.get(), bytes.substr(7), write_end.get());
  write_end.Reset();
  {
    const auto frame = ReadFrame(sockets.b.get(), kRequestMax);
    ASSERT_TRUE(frame && *frame);
    EXPECT_TRUE((*frame)->descriptor);
  }
  // Nobody has an end for writing any more.
  char byte = 0;
  EXPECT_EQ(::read(read_end.get(), &byte, 1), 0);
}

TEST(FramingTest, RefusesWhatIsDeeperThanAStack) {
  constexpr size_t kDepth = 1 << 20;
  const SocketPair sockets;
  std::string text =
      R"({"a":)" + std::string(kDepth, '[') + std::string(kDepth, ']') + "}";
  std::thread sender([&] { sockets.Send(Prefixed(text)); });
  const auto frame = ReadFrame(sockets.b.get(), kRequestMax);
  sender.join();
  EXPECT_FALSE(frame);
  EXPECT_TRUE(ParseBounded(R"({"a":"[[[[\"[[[","b":[{}]})").is_object());
  const std::string brackets(2 * kMaxNesting, '[');
  EXPECT_TRUE(ParseBounded("[\"" + brackets + "\"]").is_array());
  EXPECT_TRUE(ParseBounded(brackets).is_discarded());
}

TEST(FramingTest, EndsQuietlyBetweenFrames) {
  SocketPair sockets;
  sockets.a.Reset();
  const auto got = ReadFrame(sockets.b.get(), kRequestMax);
  ASSERT_TRUE(got);
  EXPECT_FALSE(*got);
}

TEST(FramingTest, RefusesWhatIsNoFrame) {
  const std::string cases[] = {
      "\x05",
      std::string("\x05\0\0\0{}", 6),
      std::string("\xFF\xFF\xFF\xFF", 4),
      Prefixed("no json"),
      Prefixed("[1]"),
      Prefixed(""),
      Prefixed(R"({"payload":5})") + "abc",
      Prefixed(R"({"payload":99999999})"),
      Prefixed(std::string(5000, '[')),
  };
  for (const std::string& bytes : cases) {
    SocketPair sockets;
    sockets.Send(bytes);
    sockets.a.Reset();
    EXPECT_FALSE(ReadFrame(sockets.b.get(), kRequestMax)) << bytes;
  }
}

TEST(FramingTest, SurvivesGarbage) {
  const uint64_t seed = FirstSeed();
  SCOPED_TRACE("TXFS_TEST_SEED=" + std::to_string(seed));
  std::mt19937 random(static_cast<unsigned>(seed));
  for (int round = 0; round < 300; ++round) {
    SocketPair sockets;
    std::string bytes = Prefixed(R"({"request":"read","payload":3})") + "abc";
    for (int i = 0; i < 3; ++i) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    sockets.Send(bytes);
    sockets.a.Reset();
    const auto frame = ReadFrame(sockets.b.get(), kRequestMax);
    EXPECT_TRUE(!frame || !*frame || (*frame)->header.is_object());
  }
}

/// A client that reaches a fake workspace through a daemon's socket.
class ControlTest : public testing::Test {
 protected:
  void SetUp() override {
    UniqueFd dir(::open(tree_.path().c_str(), O_RDONLY | O_DIRECTORY));
    auto store = Store::Open(std::move(dir), tree_.path(), "/w");
    ASSERT_TRUE(store) << store.error().ToString();
    workspace_ = std::make_unique<FakeWorkspace>(std::move(*store));
    dispatcher_ = std::make_unique<Dispatcher>(
        *workspace_,
        Host{.pid = 77, .mountpoint = "/m", .tell_siblings = RefreshSiblings});
    auto server = ControlServer::Listen(
        {SocketFile()}, {{"device", 5}},
        [this](const Json& request, const FrameSink& sink, pid_t) {
          return dispatcher_->Handle(request, sink);
        },
        [] {});
    ASSERT_TRUE(server) << server.error().ToString();
    server_ = std::move(*server);
  }

  Client Connect() {
    auto connection = SocketConnection::Open(SocketFile());
    EXPECT_TRUE(connection) << connection.error().ToString();
    return Client(std::move(*connection));
  }
  [[nodiscard]] std::string SocketFile() const {
    return sockets_.path() + "/socket";
  }
  [[nodiscard]] sockaddr_un Address() const {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    SocketFile().copy(address.sun_path, sizeof address.sun_path - 1);
    return address;
  }
  void AddLog(Op op, const std::string& path) {
    LogEntry entry{.lsn = Lsn{workspace_->log.size() + 1}, .change = {}};
    entry.change.op = op;
    entry.change.path = path;
    workspace_->log.push_back(entry);
  }

  TempTree tree_, sockets_;
  std::unique_ptr<FakeWorkspace> workspace_;
  std::unique_ptr<Dispatcher> dispatcher_;
  std::unique_ptr<ControlServer> server_;
};

TEST_F(ControlTest, SocketIsPrivateAndGoesWithTheServer) {
  struct stat st{};
  ASSERT_EQ(::stat(SocketFile().c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 07777, 0600U);
  server_.reset();
  EXPECT_NE(::stat(SocketFile().c_str(), &st), 0);
}

TEST_F(ControlTest, ReplacesAStaleSocketAndLeavesThatOfASuccessor) {
  auto second = ControlServer::Listen(
      {SocketFile()}, {},
      [this](const Json& request, const FrameSink& sink, pid_t) {
        return dispatcher_->Handle(request, sink);
      },
      [] {});
  ASSERT_TRUE(second);
  server_.reset();
  EXPECT_TRUE(Connect().GetStatus());
}

/// The end of a connection is the answer to what is no request.
TEST_F(ControlTest, HangsUpOnNonsense) {
  const UniqueFd caller(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_un address = Address();
  ASSERT_EQ(::connect(caller.get(), reinterpret_cast<const sockaddr*>(&address),
                      sizeof address),
            0);
  const std::string nonsense = Prefixed("no json");
  ASSERT_EQ(::send(caller.get(), nonsense.data(), nonsense.size(), 0),
            static_cast<ssize_t>(nonsense.size()));
  char byte = 0;
  EXPECT_EQ(::recv(caller.get(), &byte, 1, 0), 0);
}

TEST_F(ControlTest, AnswersWhoKnockedWhenThereWasNoDescriptorLeft) {
  Client client = Connect();
  ASSERT_TRUE(client.GetStatus());  // all of its descriptors are open
  UniqueFd knocking(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_TRUE(knocking.valid());
  const sockaddr_un address = Address();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  // More than poll() is asked about, and all of them taken.
  const rlimit none = {.rlim_cur = 3, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const int connected =
      ::connect(knocking.get(), reinterpret_cast<const sockaddr*>(&address),
                sizeof address);
  // Others are still answered.
  EXPECT_TRUE(client.GetStatus());
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_EQ(connected, 0);
  ASSERT_TRUE(WriteFrame(
      knocking.get(),
      {.header = {{"request", "status"}}, .payload = {}, .descriptor = {}}));
  const auto reply = ReadFrame(knocking.get(), kRequestMax);
  EXPECT_TRUE(reply && *reply);
}

TEST_F(ControlTest, TellsTheStatus) {
  const auto reply = Connect().GetStatus();
  ASSERT_TRUE(reply) << reply.error().ToString();
  EXPECT_EQ(reply->pid, 77U);
  EXPECT_EQ(reply->mountpoint, "/m");
  EXPECT_EQ(reply->status.workspace, "/work\xFF");
  EXPECT_EQ(reply->status.created, (Timestamp{.sec = -5, .nsec = 7}));
  EXPECT_EQ(reply->status.store_bytes, 1ULL << 40);
}

TEST_F(ControlTest, CarriesChangesOfAnyNumberAndName) {
  for (int i = 0; i < 2500; ++i) {
    NetChange change{.kind = ChangeKind::kRenamed,
                     .path = "n\xFE\n" + std::to_string(i),
                     .old_path = "o\"",
                     .before = ChangeSide{},
                     .after = std::nullopt,
                     .content = true};
    change.before->base_path = "b\xFF";
    change.before->attr.mode = 07777;
    change.before->attr.size = ~0ULL;
    workspace_->changes.push_back(change);
  }
  const auto changes = Connect().Changes(true, {"x\xFF", ""});
  ASSERT_TRUE(changes) << changes.error().ToString();
  ASSERT_EQ(changes->size(), 2500U);
  const NetChange& last = changes->back();
  EXPECT_EQ(last.kind, ChangeKind::kRenamed);
  EXPECT_EQ(last.path, "n\xFE\n2499");
  EXPECT_EQ(last.old_path, "o\"");
  EXPECT_TRUE(last.content);
  EXPECT_FALSE(last.after);
  ASSERT_TRUE(last.before);
  EXPECT_EQ(last.before->base_path, "b\xFF");
  EXPECT_EQ(last.before->attr.size, ~0ULL);
  EXPECT_EQ(workspace_->asked_below, (std::vector<std::string>{"x\xFF", ""}));
}

TEST_F(ControlTest, CarriesAllOfAChangeHoweverLongItIs) {
  NetChange change{.kind = ChangeKind::kTypeChanged,
                   .path = std::string(kPayloadMax + 7, 'p'),
                   .before = ChangeSide{},
                   .after = ChangeSide{},
                   .attributes = true};
  change.before->attr = {.type = FileType::kCharDevice,
                         .mode = 04755,
                         .uid = 1,
                         .gid = ~0U,
                         .nlink = 3,
                         .rdev = 4,
                         .size = 5,
                         .mtime = {.sec = -6, .nsec = 7}};
  change.after->attr.type = FileType::kSymlink;
  change.after->symlink = "t\xFF";
  change.after->ino = Ino{8};
  workspace_->changes.assign(5, change);
  workspace_->changes.insert(workspace_->changes.begin() + 2,
                             NetChange{.path = "short"});
  const auto changes = Connect().Changes(false, {});
  ASSERT_TRUE(changes) << changes.error().ToString();
  ASSERT_EQ(changes->size(), 6U);
  EXPECT_EQ((*changes)[2].path, "short");
  EXPECT_FALSE((*changes)[2].before || (*changes)[2].after);
  for (const size_t i : {0, 5}) {
    const NetChange& got = (*changes)[i];
    EXPECT_EQ(got.kind, change.kind);
    EXPECT_TRUE(got.path == change.path);
    EXPECT_TRUE(got.attributes && !got.content);
    ASSERT_TRUE(got.before && got.after);
    EXPECT_EQ(got.before->attr, change.before->attr);
    EXPECT_EQ(got.after->attr.type, FileType::kSymlink);
    EXPECT_EQ(got.after->symlink, "t\xFF");
    EXPECT_EQ(got.after->ino, Ino{8});
  }
}

Result<std::string> ReadOne(Client& client, const ChangeSide& side, bool before,
                            uint64_t limit,
                            const std::optional<std::string>& since = {}) {
  const WantedSide wanted{&side, before};
  return TRY(client.ReadContents({&wanted, 1}, limit, since)).at(0);
}

Result<std::string> ReadOneEnded(Client& client, const ChangeSide& side,
                                 uint64_t limit) {
  const WantedSide wanted{&side, true};
  return TRY(client.ReadEnded({&wanted, 1}, limit)).at(0);
}

TEST_F(ControlTest, ReadsBothSidesInPieces) {
  const std::string content(2 * kPayloadMax + 17, 'x');
  workspace_->base["p"] = content;
  workspace_->files.files[Ino{5}] = "new";
  ChangeSide side;
  side.base_path = "p";
  side.ino = Ino{5};
  Client client = Connect();
  for (const uint64_t size : {size_t{0}, content.size() - 1, content.size()}) {
    side.attr.size = size;
    EXPECT_EQ(ReadOne(client, side, true, 1 << 30).value(), content);
    EXPECT_EQ(ReadOne(client, side, false, 1 << 30).value(), "new");
  }
  EXPECT_EQ(ReadOne(client, side, true, 100).error().code, EFBIG);
  side.base_path = "missing";
  EXPECT_EQ(ReadOne(client, side, true, 100).error().code, ENOENT);
  EXPECT_TRUE(client.GetStatus()) << "an error ends no connection";
}

TEST_F(ControlTest, ReadsManySidesInFewRequests) {
  constexpr size_t kSides = 2500;
  std::vector<ChangeSide> sides(kSides);
  std::vector<WantedSide> wanted;
  for (size_t i = 0; i < kSides; ++i) {
    const std::string path = "p" + std::to_string(i);
    // Every seventh is not there, some are larger than a request may ask for
    // together, and one alone is.
    std::string content = path;
    if (i % 100 == 0) content.resize(300'000, 'x');
    if (i == 1200) content.resize(kPayloadMax + 5, 'y');
    sides[i].attr.size = content.size();
    sides[i].base_path = path;
    if (i % 7 != 0) workspace_->base[path] = content;
    wanted.push_back({&sides[i], true});
  }
  sides[3].attr.type = FileType::kSymlink;
  sides[3].symlink = "target";
  Client client = Connect();
  const auto contents = client.ReadContents(wanted, 1 << 30);
  ASSERT_TRUE(contents) << contents.error().ToString();
  ASSERT_EQ(contents->size(), kSides);
  for (size_t i = 0; i < kSides; ++i) {
    const Result<std::string>& content = (*contents)[i];
    if (i == 3) {
      EXPECT_EQ(*content, "target");
    } else if (i % 7 == 0) {
      EXPECT_EQ(content.error().code, ENOENT) << i;
    } else {
      EXPECT_EQ(content.value(), workspace_->base[sides[i].base_path]) << i;
    }
  }
  const auto probed = client.ProbeContents(wanted);
  ASSERT_TRUE(probed) << probed.error().ToString();
  ASSERT_EQ(probed->size(), kSides);
  EXPECT_EQ((*probed)[7].error().code, ENOENT);
  EXPECT_TRUE((*probed)[8]);
}

TEST_F(ControlTest, ComparesWithASavepoint) {
  workspace_->past[Ino{5}] = "then";
  workspace_->files.files[Ino{5}] = "now";
  Client client = Connect();
  ASSERT_TRUE(client.Changes(true, {"below"}, "s\xFF"));
  EXPECT_EQ(workspace_->asked_since, "s\xFF");
  EXPECT_EQ(workspace_->asked_below, std::vector<std::string>{"below"});
  ChangeSide side;
  side.ino = Ino{5};
  EXPECT_EQ(ReadOne(client, side, true, 100, "s").value(), "then");
  EXPECT_EQ(ReadOne(client, side, false, 100, "s").value(), "now");
}

TEST_F(ControlTest, MakesSavepointsAndRollsBack) {
  Client client = Connect();
  const Savepoint expected{
      .name = "s\xFF", .lsn = Lsn{7}, .time = {.sec = 8, .nsec = 9}};
  EXPECT_EQ(client.MakeSavepoint("s\xFF").value(), expected);
  const auto report = client.Rollback("s\xFF");
  ASSERT_TRUE(report);
  EXPECT_EQ(report->savepoint, expected);
  EXPECT_EQ(report->undone, 11u);
  EXPECT_EQ(client.moved(), std::vector<std::string>{"moved"});
  EXPECT_EQ(client.GetStatus()->status.savepoints,
            (std::vector<Savepoint>{
                {.name = "s\xFF", .lsn = Lsn{3}, .time = {.sec = 4}}}));
}

TEST_F(ControlTest, CarriesHowConflictsAreResolvedAndWhatBothSidesDid) {
  Client client = Connect();
  for (const OnConflict one : {OnConflict::kMine, OnConflict::kTheirs,
                               OnConflict::kMerge, OnConflict::kFail}) {
    const bool markers = one == OnConflict::kMerge;
    ASSERT_TRUE(client.Commit({.on_conflict = one, .markers = markers}));
    EXPECT_EQ(workspace_->commit_options.conflicts.on_conflict, one);
    EXPECT_EQ(workspace_->commit_options.conflicts.markers, markers);
  }
  EXPECT_TRUE(workspace_->commit_options.conflicts.merge);
  workspace_->conflicts = {{"c\xFF", "changed", "modified", "does not merge"}};
  EXPECT_EQ(client.Commit({})->report.conflicts, workspace_->conflicts);
  EXPECT_EQ(client.FindConflicts().value(), workspace_->conflicts);
  EXPECT_EQ(client.GetFullStatus()->conflicts.value(), workspace_->conflicts);
}

TEST_F(ControlTest, TellsTheStatusWhereConflictsCannotBeLookedFor) {
  workspace_->looking = Fail(EIO, "the disk is broken");
  Client client = Connect();
  EXPECT_TRUE(client.GetStatus());
  EXPECT_EQ(client.FindConflicts().error().code, EIO);
  const auto full = client.GetFullStatus();
  ASSERT_TRUE(full);
  EXPECT_EQ(full->reply.status.id, workspace_->id);
  EXPECT_EQ(full->conflicts.error().code, EIO);
}

TEST_F(ControlTest, ACommitTellsOfLimitsAndOfThoseThatAreAccepted) {
  workspace_->limits = {{.id = "removals",
                         .of = policy::Measure::kBaseRemoved,
                         .count = 812,
                         .total = 1000,
                         .allowance = "500",
                         .reason = "why\xFF",
                         .suggest = "what else",
                         .refuses = true,
                         .accepted = true},
                        {.id = "made",
                         .of = policy::Measure::kInodesMade,
                         .count = 7,
                         .refuses = false}};
  workspace_->plan.limits = workspace_->limits;
  Client client = Connect();
  const auto commit = client.Commit({.accepted = {"removals", "b\xFF"}});
  ASSERT_TRUE(commit) << commit.error().ToString();
  EXPECT_EQ(workspace_->commit_options.accepted,
            (std::vector<std::string>{"removals", "b\xFF"}));
  const auto plan = client.Plan({.paths = {"p"}, .accepted = {"b\xFF"}});
  ASSERT_TRUE(plan) << plan.error().ToString();
  EXPECT_EQ(workspace_->plan_request.paths, (std::vector<std::string>{"p"}));
  EXPECT_EQ(workspace_->plan_request.accepted,
            (std::vector<std::string>{"b\xFF"}));
  for (const auto& limits : {commit->report.limits, plan->limits}) {
    ASSERT_EQ(limits.size(), 2U);
    EXPECT_EQ(limits[0].id, "removals");
    EXPECT_EQ(limits[0].of, policy::Measure::kBaseRemoved);
    EXPECT_EQ(limits[0].count, 812U);
    EXPECT_EQ(limits[0].total, 1000U);
    EXPECT_EQ(limits[0].allowance, "500");
    EXPECT_EQ(limits[0].reason, "why\xFF");
    EXPECT_EQ(limits[0].suggest, "what else");
    EXPECT_FALSE(limits[0].stops());
    EXPECT_EQ(limits[1].of, policy::Measure::kInodesMade);
    EXPECT_EQ(limits[1].total, std::nullopt);
    EXPECT_FALSE(limits[1].refuses);
  }
}

TEST_F(ControlTest, ACommitTellsWhatIsHeld) {
  workspace_->held = {.changes = {{.path = "a\xFF",
                                   .old_path = "b",
                                   .change = "added",
                                   .rule = "hooks",
                                   .reason = "why",
                                   .suggest = "what else",
                                   .lines = {"line\xFF", ""},
                                   .more_lines = 7,
                                   .accepted = false}},
                      .more = {{.rule = "r", .open = 3, .accepted = 1}},
                      .left = true};
  workspace_->plan.held = workspace_->held;
  Client client = Connect();
  const auto commit =
      client.Commit({.accepted_paths = {"p\xFF"}, .without_held = true});
  ASSERT_TRUE(commit) << commit.error().ToString();
  EXPECT_EQ(workspace_->commit_options.accepted_paths,
            (std::vector<std::string>{"p\xFF"}));
  EXPECT_TRUE(workspace_->commit_options.without_held);
  const auto plan = client.Plan({.paths = {}, .without_held = true});
  ASSERT_TRUE(plan) << plan.error().ToString();
  EXPECT_TRUE(workspace_->plan_request.without_held);
  for (const HeldReport& held : {commit->report.held, plan->held}) {
    ASSERT_EQ(held.changes.size(), 1U);
    EXPECT_EQ(held.changes[0].path, "a\xFF");
    EXPECT_EQ(held.changes[0].old_path, "b");
    EXPECT_EQ(held.changes[0].rule, "hooks");
    EXPECT_EQ(held.changes[0].lines,
              (std::vector<std::string>{"line\xFF", ""}));
    EXPECT_EQ(held.changes[0].more_lines, 7U);
    EXPECT_FALSE(held.changes[0].accepted);
    ASSERT_EQ(held.more.size(), 1U);
    EXPECT_EQ(held.more[0].rule, "r");
    EXPECT_EQ(held.more[0].open, 3U);
    EXPECT_EQ(held.more[0].accepted, 1U);
    EXPECT_FALSE(held.stops()) << "they are left";
  }
}

TEST_F(ControlTest, CommitsAndDiscards) {
  Client client = Connect();
  const std::vector<std::string> paths = {"a", "b\xFF"};
  workspace_->resolved = {{.path = "r\xFF", .reason = "changed"}};
  const auto commit = client.Commit({.message = "why\n", .paths = paths});
  ASSERT_TRUE(commit);
  EXPECT_EQ(commit->report.id, "000000000001");
  EXPECT_EQ(commit->next, "000000000002");
  EXPECT_FALSE(commit->report.nothing);
  ASSERT_EQ(commit->report.resolved.size(), 1U);
  EXPECT_EQ(commit->report.resolved[0].path, "r\xFF");
  EXPECT_EQ(commit->report.savepoints, std::vector<std::string>{"sp\xFF"});
  EXPECT_EQ(workspace_->commit_options.message, "why\n");
  EXPECT_EQ(workspace_->commit_options.paths, paths);
  workspace_->nothing = true;
  EXPECT_TRUE(client.Commit({.message = "m"}).value().report.nothing);
  EXPECT_EQ(workspace_->commit_options.paths, std::vector<std::string>());
  workspace_->conflicts = {{.path = "c\xFF", .reason = "changed"}};
  const auto conflict = client.Commit({.message = ""});
  ASSERT_TRUE(conflict);
  ASSERT_EQ(conflict->report.conflicts.size(), 1U);
  EXPECT_EQ(conflict->report.conflicts[0].path, "c\xFF");
  EXPECT_EQ(client.Discard({}).value().id, "000000000002");
}

TEST_F(ControlTest, TellsSiblingsThatTheBaseChanged) {
  OpenTransaction sibling = *workspace_->store().Begin("s", {.sec = 1});
  DaemonRecord record{
      .pid = 1,
      .mountpoint = "/m",
      .sockets = {{SocketFile(), "of one that was there before"}}};
  const auto write = [&] {
    return workspace_->store().WriteDaemonRecord(sibling.id,
                                                 Dump(ToJson(record)));
  };
  ASSERT_TRUE(write());
  EXPECT_EQ(ListServed(workspace_->store())->front().daemon,
            DaemonState::kDead);
  record.sockets = {{"/no/such/socket", "1.2.3"},
                    {SocketFile(), server_->sockets().front().stamp}};
  ASSERT_TRUE(write());
  const auto served = ListServed(workspace_->store());
  ASSERT_TRUE(served && served->size() == 1);
  EXPECT_EQ(served->front().daemon, DaemonState::kRunning);
  workspace_->conflicts = {{"p", "changed"}};
  ASSERT_TRUE(Connect().Commit({.message = "m"}));
  ASSERT_TRUE(Connect().Undo(""));
  workspace_->conflicts.clear();
  workspace_->nothing = true;
  ASSERT_TRUE(Connect().Commit({.message = "m"}));
  EXPECT_EQ(workspace_->refreshes, 0);
  workspace_->nothing = false;
  ASSERT_TRUE(Connect().Commit({.message = "m"}));
  EXPECT_EQ(workspace_->refreshes, 1);
  ASSERT_TRUE(Connect().Undo(""));
  EXPECT_EQ(workspace_->refreshes, 2);
  // A commit of a process that died, found and finished.
  workspace_->recovery = "000000000007";
  std::string finished;
  auto connection = SocketConnection::Open(SocketFile());
  ASSERT_TRUE(connection);
  (*connection)->OnFinished([&](std::string_view id) { finished = id; });
  ASSERT_TRUE((*connection)->Call({{"request", "status"}}));
  EXPECT_EQ(finished, "000000000007");
  EXPECT_EQ(workspace_->refreshes, 3);
  server_.reset();
  EXPECT_EQ(ListServed(workspace_->store())->front().daemon,
            DaemonState::kDead);
  // Who has the transaction open is alive, whatever became of its sockets.
  record.pid = static_cast<uint32_t>(::getpid());
  ASSERT_TRUE(write());
  EXPECT_EQ(ListServed(workspace_->store())->front().daemon,
            DaemonState::kRunning);
}

TEST_F(ControlTest, TellsHowFarACommitIs) {
  std::vector<std::pair<size_t, size_t>> seen;
  const auto commit = Connect().Commit(
      {}, [&](size_t done, size_t all) { seen.emplace_back(done, all); });
  ASSERT_TRUE(commit) << commit.error().ToString();
  EXPECT_EQ(commit->report.id, "000000000001");
  // The second one came too soon after the first.
  EXPECT_EQ(seen, (std::vector<std::pair<size_t, size_t>>{{1, 2}}));
}

TEST_F(ControlTest, PlansACommit) {
  workspace_->plan = {.id = "1",
                      .changes = 2,
                      .steps = {"replace a\xFF", "delete b"},
                      .conflicts = {{.path = "c\xFF", .reason = "deleted"}},
                      .withheld = {"w"}};
  const auto plan = Connect().Plan({});
  ASSERT_TRUE(plan) << plan.error().ToString();
  EXPECT_EQ(plan->steps, workspace_->plan.steps);
  EXPECT_EQ(plan->changes, 2U);
  ASSERT_EQ(plan->conflicts.size(), 1U);
  EXPECT_EQ(plan->conflicts[0].path, "c\xFF");
  EXPECT_EQ(plan->withheld, workspace_->plan.withheld);
}

TEST_F(ControlTest, UndoesOrSaysWhyNot) {
  Client client = Connect();
  const auto undone = client.Undo("00ab");
  ASSERT_TRUE(undone);
  EXPECT_EQ(undone->id, "000000000009");
  EXPECT_EQ(undone->undone, "00ab");
  EXPECT_EQ(undone->changes, 4U);
  workspace_->conflicts = {{.path = "c\xFF", .reason = "changed"}};
  const auto refused = client.Undo("");
  ASSERT_TRUE(refused);
  ASSERT_EQ(refused->conflicts.size(), 1U);
  EXPECT_EQ(refused->conflicts[0].reason, "changed");
}

TEST_F(ControlTest, ShowsACommitWithItsContent) {
  workspace_->view.summary = {.id = "000000000003",
                              .state = TransactionState::kCommitted,
                              .kind = TransactionKind::kUndo,
                              .message = "m\xFF",
                              .author = "somebody",
                              .of = "000000000002",
                              .undone_by = "000000000004",
                              .runs = {{.id = "run-abc234",
                                        .command = {"make", "t\xFF"},
                                        .is_cut = true,
                                        .profile = "p",
                                        .outcome = RunOutcome::kRolledBack,
                                        .why = "exit 2",
                                        .code = 2,
                                        .begin = {5, 6},
                                        .milliseconds = 7}},
                              .undoable = true};
  workspace_->view.has_changes = true;
  workspace_->view.lost = {{.path = "l\xFF", .reason = "deleted"}};
  NetChange change{.path = "p", .before = ChangeSide{}, .after = ChangeSide{}};
  change.before->base_path = "p";
  change.before->delta = {
      .name = "v/o1", .keep = 2, .size = 5, .ranges = {{0, 1}, {3, 5}}};
  change.after->vault_path = "v/n1";
  workspace_->view.changes.assign(2500, change);
  workspace_->base["p"] = "abcdefgh";
  workspace_->vault["v/o1"] = std::string("X\0\0YZ", 5);
  workspace_->vault["v/n1"] = "new";
  Client client = Connect();
  const auto view = client.Show("3");
  ASSERT_TRUE(view) << view.error().ToString();
  EXPECT_TRUE(view->has_changes);
  EXPECT_EQ(view->summary.kind, TransactionKind::kUndo);
  EXPECT_EQ(view->summary.message, "m\xFF");
  EXPECT_EQ(view->summary.author, "somebody");
  EXPECT_EQ(view->summary.of, "000000000002");
  EXPECT_EQ(view->summary.undone_by, "000000000004");
  EXPECT_EQ(view->summary.runs, workspace_->view.summary.runs);
  EXPECT_TRUE(view->summary.undoable);
  ASSERT_EQ(view->lost.size(), 1U);
  EXPECT_EQ(view->lost[0].path, "l\xFF");
  ASSERT_EQ(view->changes.size(), 2500U);
  const NetChange& got = view->changes.back();
  EXPECT_EQ(got.before->delta, change.before->delta);
  EXPECT_EQ(ReadOneEnded(client, *got.before, 100).value(),
            std::string("Xb\0YZ", 5));
  EXPECT_EQ(ReadOneEnded(client, *got.after, 100).value(), "new");
  EXPECT_EQ(ReadOneEnded(client, *got.after, 2).error().code, EFBIG);
}

TEST_F(ControlTest, FreesWhatIsNotToBeKept) {
  workspace_->kept = {.commits = 7, .bytes = 8};
  Client client = Connect();
  const auto report = client.CollectGarbage(std::nullopt, 0);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->commits, 3U);
  EXPECT_EQ(report->bytes, 1ULL << 41);
  EXPECT_EQ(report->forgotten, 5U);
  EXPECT_EQ(workspace_->kept.commits, 7U);
  EXPECT_EQ(workspace_->kept.bytes, 0U);
}

TEST_F(ControlTest, FinishesCommitsOfDeadProcessesBeforeItAnswers) {
  Client client = Connect();
  ASSERT_TRUE(client.GetStatus());
  EXPECT_EQ(workspace_->recoveries, 1);
  workspace_->recovery = Fail(ErrorKind::kBusy, 0, "somebody is at it");
  EXPECT_TRUE(client.GetStatus());
  workspace_->recovery = Fail(EIO, "the disk is broken");
  EXPECT_EQ(client.GetStatus().error().code, EIO);
}

TEST_F(ControlTest, FiltersTheLogAndHidesWhatIsInternal) {
  for (int i = 0; i < 5; ++i) AddLog(Op::kWrite, "d/f");
  AddLog(Op::kReap, "d/f");
  AddLog(Op::kMkdir, "dd");
  workspace_->log.back().change.result = EPERM;
  Client client = Connect();
  EXPECT_EQ(client.Log({}).value().entries.size(), 6U);
  EXPECT_EQ(client.Log({.path = "d"}).value().entries.size(), 5U);
  const auto mkdirs = client.Log({.op = "mkdir", .path = std::nullopt});
  ASSERT_EQ(mkdirs->entries.size(), 1U);
  EXPECT_EQ(mkdirs->entries[0].change.result, EPERM);
  const auto last = client.Log({.last = 2, .path = std::nullopt});
  ASSERT_EQ(last->entries.size(), 2U);
  EXPECT_EQ(last->entries[0].lsn, Lsn{5});
  const auto page = client.Log({.first = 2, .count = 2, .path = std::nullopt});
  ASSERT_EQ(page->entries.size(), 2U);
  EXPECT_EQ(page->next, 4U);
  EXPECT_FALSE(page->end);
  EXPECT_EQ(client.Log({.op = "reap", .path = std::nullopt}).error().kind,
            ErrorKind::kUsage);
}

TEST_F(ControlTest, NamesTheRunOfAnOperation) {
  for (int i = 0; i < 5; ++i) AddLog(Op::kWrite, "f");
  workspace_->runs = {{.id = "run-a",
                       .outcome = RunOutcome::kKept,
                       .after = Lsn{1},
                       .until = Lsn{3}},
                      {.id = "run-b", .after = Lsn{4}}};
  Client client = Connect();
  const auto log = client.Log({.path = std::nullopt});
  ASSERT_TRUE(log) << log.error().ToString();
  std::vector<std::string> runs;
  for (const LogEntry& entry : log->entries) runs.push_back(entry.run);
  EXPECT_EQ(runs,
            (std::vector<std::string>{"", "run-a", "run-a", "", "run-b"}));
}

TEST_F(ControlTest, TellsOfDenialsAndHowManyAreOnlyCounted) {
  AddLog(Op::kWrite, "a");
  for (const char* path : {"a", "b\xFF", "b\xFF/c"}) {
    LogEntry denial{.lsn = Lsn{workspace_->denials.entries.size() + 5}};
    denial.change.op = Op::kMkdir;
    denial.change.path = path;
    denial.change.result = EPERM;
    denial.change.rule = "hooks";
    denial.change.reason = "why\xFF";
    denial.change.suggest = "ask";
    denial.count = 3;
    denial.first = {.sec = 7, .nsec = 8};
    workspace_->denials.entries.push_back(denial);
  }
  workspace_->denials.rules.push_back(
      {.policy = 1, .rule = "hooks", .count = 11});
  Client client = Connect();
  const auto all = client.Log({.path = std::nullopt, .denied = true});
  ASSERT_TRUE(all) << all.error().ToString();
  ASSERT_EQ(all->entries.size(), 3U);
  EXPECT_EQ(all->dropped, 2U);
  EXPECT_EQ(all->next, 8U);
  const LogEntry& denial = all->entries[2];
  EXPECT_EQ(denial.change, workspace_->denials.entries[2].change);
  EXPECT_EQ(denial.count, 3U);
  EXPECT_EQ(denial.first, (Timestamp{.sec = 7, .nsec = 8}));
  const auto below = client.Log({.last = 1, .path = "b\xFF", .denied = true});
  ASSERT_EQ(below->entries.size(), 1U);
  EXPECT_EQ(below->entries[0].change.path, "b\xFF/c");
  const auto later =
      client.Log({.first = 7, .path = std::nullopt, .denied = true});
  EXPECT_EQ(later->entries.size(), 1U);
  const auto rest =
      client.Log({.first = 8, .path = std::nullopt, .denied = true});
  EXPECT_TRUE(rest->entries.empty());
  EXPECT_EQ(client.Log({.path = std::nullopt})->dropped, 0U);
}

TEST_F(ControlTest, AnswersWhatItDoesNotKnowWithAnError) {
  auto connection = SocketConnection::Open(SocketFile());
  ASSERT_TRUE(connection);
  for (const Json& request :
       {Json::object(), Json{{"request", "fly"}}, Json{{"request", 5}},
        Json{{"request", "read"}, {"items", {{{"length", 1 << 30}}}}},
        Json{{"request", "read"}, {"items", std::vector<int>(1001)}},
        Json{{"request", "log"}, {"op", "none"}}}) {
    EXPECT_FALSE((*connection)->Call(request)) << request;
  }
  EXPECT_TRUE((*connection)->Call({{"request", "status"}}));
}

UniqueFd ConnectSilently(const sockaddr_un& address) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address),
                      sizeof address),
            0);
  return fd;
}

TEST_F(ControlTest, PeersThatSayNothingKeepNobodyOut) {
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 200; ++i) {
    silent.push_back(ConnectSilently(Address()));
    // Some begin a request that never ends.
    const std::string begun = Prefixed(R"({"request":"status"})").substr(0, 9);
    if (i % 2 == 0) {
      EXPECT_EQ(
          ::send(silent.back().get(), begun.data(), begun.size(), MSG_NOSIGNAL),
          static_cast<ssize_t>(begun.size()));
    }
    if (i % 20 == 0) {
      EXPECT_TRUE(Connect().GetStatus()) << i;
    }
  }
  EXPECT_TRUE(Connect().GetStatus());
}

TEST_F(ControlTest, PeersThatTakeNothingKeepNobodyOut) {
  workspace_->base["big"] = std::string(1 << 20, 'x');
  const Frame request{
      .header = {{"request", "read"},
                 {"items", {{{"base_path", "big"}, {"length", 1 << 20}}}}},
      .payload = {},
      .descriptor = {}};
  std::vector<UniqueFd> stuck;
  for (int i = 0; i < 100; ++i) {
    stuck.push_back(ConnectSilently(Address()));
    // Later ones may be hung up on at once.
    std::ignore = WriteFrame(stuck.back().get(), request);
  }
  EXPECT_TRUE(Connect().GetStatus());
  // Their answers are given up before the daemon ends.
  stuck.clear();
}

TEST_F(ControlTest, APeerThatIsAnsweredStays) {
  std::promise<void> asked;
  std::promise<void> go;
  auto server = ControlServer::Listen(
      {SocketFile()}, {},
      [&](const Json& request, const FrameSink& sink, pid_t) -> Status {
        if (GetBytes(request, "request") == "long") {
          asked.set_value();
          go.get_future().wait();
        }
        return sink(Frame{});
      },
      [] {});
  ASSERT_TRUE(server);
  auto connection = SocketConnection::Open(SocketFile());
  ASSERT_TRUE(connection);
  std::thread caller(
      [&] { EXPECT_TRUE((*connection)->Call({{"request", "long"}})); });
  asked.get_future().wait();
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 150; ++i) silent.push_back(ConnectSilently(Address()));
  auto other = SocketConnection::Open(SocketFile());
  ASSERT_TRUE(other);
  EXPECT_TRUE((*other)->Call({{"request", "short"}}));
  go.set_value();
  caller.join();
}

TEST_F(ControlTest, SaysHelloWhateverElseGoesOn) {
  auto connection = SocketConnection::Open(SocketFile());
  ASSERT_TRUE(connection);
  const auto reply = (*connection)->Call({{"request", "hello"}});
  ASSERT_TRUE(reply);
  EXPECT_EQ(GetUint(reply->header, "device"), 5U);
}

TEST_F(ControlTest, TheDaemonOfAnotherMountIsNotMeant) {
  const DaemonAddress other{
      .mountpoint = "/m", .sockets = {SocketFile()}, .device = 6};
  EXPECT_FALSE(ConnectDaemon(other, 1000));
  const DaemonAddress this_one{
      .mountpoint = "/m", .sockets = {"/no/such", SocketFile()}, .device = 5};
  EXPECT_TRUE(ConnectDaemon(this_one, 1000));
}

TEST_F(ControlTest, ListensAtPathsOfAnyLengthAndWhereItCan) {
  std::string deep = sockets_.path();
  for (int i = 0; i < 10; ++i) {
    deep += "/" + std::string(100, 'd');
    ASSERT_EQ(::mkdir(deep.c_str(), 0700), 0);
  }
  const std::string path = deep + "/socket";
  auto server = ControlServer::Listen(
      {sockets_.path() + "/missing/socket", path}, {},
      [](const Json&, const FrameSink& sink, pid_t) { return sink(Frame{}); },
      [] {});
  ASSERT_TRUE(server) << server.error().ToString();
  ASSERT_EQ((*server)->sockets().size(), 1U);
  auto connection = SocketConnection::Open(path);
  ASSERT_TRUE(connection) << connection.error().ToString();
  EXPECT_TRUE((*connection)->Call({{"request", "x"}}));
  server->reset();
  EXPECT_EQ(StampOf(path), "");
}

/// Somebody who takes connections and says what the test wants.
class FakeDaemon {
 public:
  FakeDaemon(const std::string& path, std::function<void(int)> talk) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    listener_.Reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(
        ::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address),
               sizeof address),
        0);
    EXPECT_EQ(::listen(listener_.get(), 4), 0);
    thread_ = std::thread([this, talk = std::move(talk)] {
      const UniqueFd peer(::accept(listener_.get(), nullptr, nullptr));
      talk(peer.get());
    });
  }
  ~FakeDaemon() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }
  FakeDaemon(const FakeDaemon&) = delete;
  FakeDaemon& operator=(const FakeDaemon&) = delete;

 private:
  UniqueFd listener_;
  std::thread thread_;
};

TEST(FakeDaemonTest, OneThatNeverEndsIsGivenUpInTime) {
  const TempTree tree;
  const std::string path = tree.path() + "/socket";
  const FakeDaemon daemon(path, [](int peer) {
    Frame frame;
    frame.header["more"] = true;
    while (WriteFrame(peer, frame)) {
    }
  });
  auto connection = SocketConnection::Open(path, 100);
  ASSERT_TRUE(connection);
  const auto reply = (*connection)->Call({{"request", "hello"}});
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, ETIMEDOUT);
  connection->reset();
}

TEST(FakeDaemonTest, OneThatHangsIsSaidTo) {
  const TempTree tree;
  const std::string path = tree.path() + "/socket";
  const FakeDaemon daemon(path, [](int peer) {
    char byte = 0;
    while (::recv(peer, &byte, 1, 0) > 0) {
    }
  });
  const auto connection =
      ConnectDaemon({.mountpoint = "/m", .sockets = {path}}, 100);
  ASSERT_FALSE(connection);
  EXPECT_EQ(connection.error().code, ETIMEDOUT);
  EXPECT_NE(connection.error().message.find("does not answer"),
            std::string::npos);
  EXPECT_NE(connection.error().hint.find("kill"), std::string::npos);
}

TEST(HandedOutTest, IsADirectoryAtAnAbsolutePathInNoMount) {
  const auto directory = OpenAt(AT_FDCWD, "/", O_RDONLY | O_DIRECTORY);
  const auto file = OpenAt(AT_FDCWD, "/dev/null", O_RDONLY);
  ASSERT_TRUE(directory && file);
  EXPECT_TRUE(CheckHandedOut("/ws", directory->get()));
  EXPECT_FALSE(CheckHandedOut("ws", directory->get()));
  EXPECT_FALSE(CheckHandedOut("", directory->get()));
  EXPECT_FALSE(CheckHandedOut(std::string("/w\0s", 4), directory->get()));
  EXPECT_FALSE(CheckHandedOut("/ws", file->get()));
  EXPECT_FALSE(CheckHandedOut("/ws", -1));
}

TEST_F(ControlTest, StopsWhileClientsAreConnected) {
  Client client = Connect();
  ASSERT_TRUE(client.GetStatus());
  server_->Stop();
  EXPECT_FALSE(client.GetStatus());
}

TEST(BytesTest, ComeBackAsTheyWere) {
  std::string all;
  for (int i = 0; i < 256; ++i) {
    all += static_cast<char>(i);
    const std::string text = Dump(EncodeBytes(all));
    EXPECT_EQ(DecodeBytes(Json::parse(text)), all);
    EXPECT_EQ(DecodeBase64(EncodeBase64(all)), all);
  }
}

}  // namespace
}  // namespace txfs::cli
