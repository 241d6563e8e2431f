#include "cli/run/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace txfs::cli {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> Dropped(const char* variable) {
  const std::array<const char*, 2> environ = {variable, nullptr};
  return MakeEnvironment(environ.data(), {}, true).dropped;
}

TEST(EnvironmentTest, DropsWhatLooksLikeASecret) {
  for (const char* variable :
       {"MY_TOKEN=1",
        "API_KEY=1",
        "DB_PWD=hunter2",
        "mysql_pwd=1",
        "PGPASS=1",
        "STRIPE_SK=1",
        "SLACK_WEBHOOK_URL=https://example.org/a",
        "HOOK=https://hooks.slack.com/services/T/B/x",
        "AZURE_STORAGE_CONNECTION_STRING=x",
        "SqlConnectionString=x",
        "DATABASE_URL=postgres://user:word@db.example.org/name",
        "REDIS_URL=redis://:word@localhost:6379/0",
        "https_proxy=http://user:word@proxy.example.org:3128",
        "REMOTES=https://example.org/a https://u:w@example.org/b",
        "STORAGE=DefaultEndpointsProtocol=https;AccountName=a;AccountKey=k==",
        "JDBC=jdbc:postgresql://host/db?user=u&Password=word",
        "BUS=Endpoint=sb://a.example.org/;SharedAccessKey=k",
        "CI_JOB_JWT=1",
        "GCP_CREDS=1",
        "OPENAIKEY=1",
        "DBPASS=1",
        "ROOTPW=1",
        "SVC_ACCOUNT_JSON={}",
        "CLIENT_PEM=1",
        "SIGNED=eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
        "HEADER=Authorization: Bearer abcdef",
        "A=ghp_abcdefghijklmnopqrstuvwxyz",
        "B=sk-abcdefghijklmnopqrstuvwxyz",
        "C=-----BEGIN RSA PRIVATE KEY-----\nx"}) {
    EXPECT_THAT(Dropped(variable), testing::SizeIs(1)) << variable;
  }
}

TEST(EnvironmentTest, PassesWhatIsOrdinary) {
  for (const char* variable :
       {"PWD=/home/user",
        "OLDPWD=/home",
        "PROJECT_PWD=/home/user/project",
        "PATH=/usr/bin:/bin",
        "KEYMAP=us",
        "PASSIVE=1",
        "OPENSSL_PEMDIR=/etc/ssl",
        "AUTHOR=somebody",
        "LANG=sk_SK.UTF-8",
        "LS_COLORS=di=01;34:ln=01;36",
        "DATABASE_URL=sqlite:///db.sqlite",
        "DATABASE_URL=postgres://user@localhost:5432/name",
        "http_proxy=http://proxy.example.org:3128",
        "REGISTRY=https://registry.example.org:4873/@scope/package",
        "EMAIL=user@example.org",
        "GIT_CONFIG_KEY_0=user.name",
        "CFLAGS=-O2 -DPASSWORD",
        "DESK=oak",
        "EDITOR=vim",
        "LOGIN_WITH=password",
        "LANGUAGE=sk-SK",
        "LESS=-R --mouse"}) {
    EXPECT_THAT(Dropped(variable), IsEmpty()) << variable;
  }
}

TEST(EnvironmentTest, PassesASecretThatIsNamed) {
  const std::array<const char*, 3> environ = {"URL=a://b:c@d", "DB_PWD=1",
                                              nullptr};
  const Environment made = MakeEnvironment(environ.data(), {"URL"}, true);
  EXPECT_THAT(made.dropped, ElementsAre("DB_PWD"));
  EXPECT_THAT(made.variables, ElementsAre(testing::Pair("URL", "a://b:c@d")));
}

}  // namespace
}  // namespace txfs::cli
