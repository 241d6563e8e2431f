#include "cli/run/nested.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/protocol/framing.h"
#include "cli/protocol/wire.h"
#include "temp_tree.h"

namespace txfs::cli {
namespace {

/// What the channel has asked its daemon for.
struct Asked {
  std::vector<std::string> back;  ///< numbers of savepoints, in order
  std::vector<std::string> made;  ///< their names
  bool can_go_back = true;
};

class FakeConnection : public Connection {
 public:
  explicit FakeConnection(std::shared_ptr<Asked> asked)
      : asked_(std::move(asked)) {}

 protected:
  Status Exchange(const Json& request, const FrameSink& sink) override {
    const std::string name = GetBytes(request, "name");
    if (GetBytes(request, "request") == "savepoint") {
      asked_->made.push_back(name);
    } else if (asked_->can_go_back) {
      const auto at = std::ranges::find(asked_->made, name);
      asked_->back.push_back(std::to_string(at - asked_->made.begin()));
    } else {
      return Fail(EIO, "the disk");
    }
    Frame reply;
    reply.header["savepoint"] = ToJson(Savepoint{.name = name});
    return sink(reply);
  }

 private:
  const std::shared_ptr<Asked> asked_;
};

/// A `txfs run` in a run.
class InnerRun {
 public:
  explicit InnerRun(const std::string& path)
      : fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    EXPECT_EQ(::connect(fd_.get(), reinterpret_cast<const sockaddr*>(&address),
                        sizeof address),
              0);
  }
  /// Whether it could begin in `around`.
  bool Begin(const std::string& around) {
    const Json reply =
        Ask({{"request", "begin"}, {"inside", EncodeBytes(around)}});
    savepoint_ = GetBytes(reply, "savepoint");
    return !reply.contains("error");
  }
  bool Do(const char* request) {
    return !Ask({{"request", request}}).contains("error");
  }
  void Die() { fd_.Reset(); }
  [[nodiscard]] const std::string& savepoint() const { return savepoint_; }

 private:
  Json Ask(Json request) {
    Frame frame;
    frame.header = std::move(request);
    EXPECT_TRUE(WriteFrame(fd_.get(), frame));
    auto reply = ReadFrame(fd_.get(), kReplyMax);
    EXPECT_TRUE(reply && *reply);
    return reply && *reply ? (*reply)->header : Json::object();
  }

  UniqueFd fd_;
  std::string savepoint_;
};

class RunChannelTest : public testing::Test {
 protected:
  RunChannelTest() {
    auto channel = RunChannel::Open(
        path_, Client(std::make_unique<FakeConnection>(asked_)));
    EXPECT_TRUE(channel);
    channel_ = std::move(*channel);
  }

  const TempTree tree_;
  const std::string path_ = tree_.path() + "/socket";
  const std::shared_ptr<Asked> asked_ = std::make_shared<Asked>();
  std::unique_ptr<RunChannel> channel_;
};

TEST_F(RunChannelTest, RefusesARunThatIsNotInTheInnermost) {
  InnerRun first(path_), inside(path_), beside(path_);
  ASSERT_TRUE(first.Begin(""));
  EXPECT_FALSE(beside.Begin(""));
  ASSERT_TRUE(inside.Begin(first.savepoint()));
  EXPECT_FALSE(beside.Begin(first.savepoint()));
  EXPECT_TRUE(inside.Do("end"));
  EXPECT_TRUE(beside.Begin(first.savepoint()));
  EXPECT_TRUE(beside.Do("back"));
  EXPECT_FALSE(beside.Begin(inside.savepoint()));
  EXPECT_TRUE(first.Do("end"));
  EXPECT_TRUE(channel_->Close());
  EXPECT_EQ(asked_->back, std::vector<std::string>{"2"});
}

TEST_F(RunChannelTest, GoesBackWhenARunEndsWithoutAWord) {
  InnerRun first(path_), inside(path_), later(path_);
  ASSERT_TRUE(first.Begin(""));
  ASSERT_TRUE(inside.Begin(first.savepoint()));
  first.Die();
  // The process of the test lives on, for which the channel waits.
  while (!later.Begin("")) {
  }
  EXPECT_FALSE(inside.Do("end"));
  EXPECT_TRUE(channel_->Close());
  EXPECT_EQ(asked_->back, (std::vector<std::string>{"0", "2"}));
}

TEST_F(RunChannelTest, FailsIfARunCannotGoBack) {
  asked_->can_go_back = false;
  InnerRun first(path_), later(path_);
  ASSERT_TRUE(first.Begin(""));
  EXPECT_FALSE(first.Do("back"));
  EXPECT_FALSE(later.Begin(""));
  const Status closed = channel_->Close();
  ASSERT_FALSE(closed);
  EXPECT_EQ(closed.error().message,
            "a run in this run could not be rolled back: the disk");
}

}  // namespace
}  // namespace txfs::cli
