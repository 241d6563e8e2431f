// What a judgement costs: `./dev bench policy`.

#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "policy/load.h"
#include "policy/policy.h"

namespace {

using txfs::policy::Effect;
using txfs::policy::Evaluate;
using txfs::policy::Event;
using txfs::policy::Load;
using txfs::policy::Op;
using txfs::policy::Policy;

constexpr int kRules = 200;

std::string RuleOf(int number, const std::string& what) {
  return "[[fs]]\nid = \"r" + std::to_string(number) + "\"\n" + what +
         "\nreason = \"because\"\nsuggest = \"ask\"\n";
}

/// The kinds of rules that there are, each with other names.
std::string Varied(int number) {
  const std::string n = std::to_string(number / 10);
  switch (number % 10) {
    case 0:
    case 1:
      return "path = \"/deploy/service-" + n + "/production.yaml\"";
    case 2:
      return "path = \"**/.git" + (n == "0" ? "" : n) + "/hooks/\"";
    case 3:
      return "path = [\"*.pem" + n + "\", \"id_rsa" + n + "*\"]";
    case 4:
      return "path = \"*.tfstate" + n + "*\"";
    case 5:
      return "path = \"**/secrets" + n + "/**\"\nlayer = \"base\"";
    case 6:
      return "path = \".env.stage" + n + "\"\nnocase = true";
    case 7:
      return "path = \"**/.ci" + n + "/*.yml\"\nops = [\"make\", \"content\"]";
    case 8:
      return "path = \"**/.git/config" + n +
             "\"\nunless = { exe = "
             "\"/usr/bin/git\" }";
    default:
      return "path = \"vendor/**/LICENSE" + n + "\"\nexe = \"python3*\"";
  }
}

std::string Extension(int number) {
  return "path = \"*.x" + std::to_string(number) + "\"";
}

/// They have nothing that one could look for.
std::string Wild(int number) {
  return "path = \"[a-c]?[x-z" + std::string(1, '0' + number % 10) + "]*\"";
}

std::string Same(int) { return "path = \"**/hooks/\"\naction = \"audit\""; }

const Policy& Rules(std::string (*rule)(int)) {
  static std::vector<std::pair<std::string (*)(int), Policy*>> made;
  for (const auto& [by, policy] : made) {
    if (by == rule) return *policy;
  }
  std::string text = "schema = 1\n";
  for (int i = 0; i < kRules; ++i) text += RuleOf(i, rule(i));
  auto loaded = Load(text, "rules.toml");
  if (!loaded) {
    std::fprintf(stderr, "%s\n", loaded.error().ToString().c_str());
    std::abort();
  }
  made.emplace_back(rule, new Policy(std::move(loaded->rules)));
  return *made.back().second;
}

/// Judged one after the other.
struct Work {
  std::string name;
  const Policy* policy;
  std::vector<std::string> paths;
};

std::vector<Work>& Works() {
  static std::vector<Work> works;
  return works;
}

void Judge(benchmark::State& state) {
  const Work& work = Works().at(static_cast<size_t>(state.range()));
  Event event{.op = Op::kWrite,
              .effect = Effect::kContent,
              .path = {},
              .exe = "/usr/lib/llvm-19/bin/clang",
              .uid = 1000};
  size_t at = 0;
  while (state.KeepRunning()) {
    event.path = work.paths[at];
    benchmark::DoNotOptimize(Evaluate(*work.policy, event));
    if (++at == work.paths.size()) at = 0;
  }
  state.SetLabel(work.name);
}

benchmark::internal::Benchmark* const kJudge =
    benchmark::RegisterBenchmark("Judge", Judge);

void Add(std::string name, const Policy& policy,
         std::vector<std::string> paths) {
  kJudge->Arg(static_cast<int64_t>(Works().size()));
  Works().push_back({std::move(name), &policy, std::move(paths)});
}

void Add(const std::string& name, const Policy& policy,
         const std::string& path) {
  Add(name, policy, std::vector{path});
}

const std::vector<std::pair<std::string, std::string>>& Paths() {
  static const std::vector<std::pair<std::string, std::string>> kPaths{
      {"short", "Makefile"},
      {"source", "src/components/dashboard/widgets/chart/line_chart.test.ts"},
      {"deep",
       "node_modules/@babel/core/node_modules/@babel/helper-compilation-"
       "targets/node_modules/lru-cache/dist/commonjs/index.d.ts.map"},
      {"odd-bytes", "data/\xff\xfe\x01 caf\xc3\xa9\n/\xf0\x9f\x8c\x8d/x\t.bin"},
      {"near-misses", "deploy/.git/secrets/tfstate/hooks.pem/.env/config.yml"},
      {"denied-by-name", "sub/module/.git/hooks/pre-commit"},
      {"denied-by-extension", "infra/live/eu-west-1/terraform.tfstate7.backup"},
      {"denied-any-case", "services/web/.ENV.Stage3"},
      {"not-the-program", "a/vendor/.git/config12"},
  };
  return kPaths;
}

/// So many that neither caches nor the prediction of branches know them all.
std::vector<std::string> ManySources() {
  const std::vector<std::string> names{"src",  "lib",    "core",   "widgets",
                                       "test", "render", "module", "Parser"};
  std::vector<std::string> paths;
  for (size_t i = 0; i < 8192; ++i) {
    std::string path;
    for (size_t rest = i; rest != 0; rest /= 8) path += names[rest % 8] + "/";
    paths.push_back(path + "file" + std::to_string(i) + ".cc");
  }
  return paths;
}

std::string Repeated(const std::string& part, size_t length) {
  std::string text;
  while (text.size() + part.size() < length) text += part;
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  static const Policy none;
  for (const auto& [name, path] : Paths()) {
    if (name == "source") Add("no-rules/" + name, none, path);
  }
  for (const auto& [name, path] : Paths()) {
    Add("200-varied/" + name, Rules(Varied), path);
  }
  for (const auto& [name, path] : Paths()) {
    Add("200-extensions/" + name, Rules(Extension), path);
  }
  Add("200-extensions/denied", Rules(Extension), "src/lib/thing.x199");
  Add("200-varied/8192-sources", Rules(Varied), ManySources());
  Add("200-extensions/8192-sources", Rules(Extension), ManySources());
  Add("200-alike/all-match", Rules(Same), "sub/.git/hooks/pre-commit");
  // As bad as it gets: no bar is for these.
  Add("worst/200-varied/4095-bytes", Rules(Varied), Repeated("secrets/", 4095));
  Add("worst/200-extensions/4095-bytes", Rules(Extension),
      Repeated(".x1/", 4095));
  Add("worst/200-wild/source", Rules(Wild), Paths()[1].second);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
