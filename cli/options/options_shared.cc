#include <charconv>
#include <memory>
#include <system_error>

#include "cli/options/options.h"

namespace txfs::cli {
namespace {

/// Rejects -1 and numbers that are too large: CLI11 reads them as large
/// numbers. Returns the error of the number at the start of `text`, or "".
std::string CheckNumber(const std::string& text) {
  uint64_t number = 0;
  const auto read =
      std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec == std::errc::result_out_of_range) return text + " is too large";
  return read.ec == std::errc() ? "" : text + " is not a number from 0 on";
}

/// An option of bytes: 1048576, 10GiB, 500MB.
void AddBytes(CLI::App& sub, const char* name, std::optional<uint64_t>& bytes,
              const char* help) {
  // CLI11 runs the validator that was added last first.
  sub.add_option(name, bytes, help)
      ->type_name("SIZE")
      ->transform(CLI::AsSizeValue(false).description(""))
      ->transform(CLI::Validator(CheckNumber, ""));
}

}  // namespace

void AddKeep(CLI::App& sub, KeepArguments& keep) {
  sub.add_option("--keep-commits", keep.commits,
                 "Number of commits to keep for undo (default: 50)")
      ->type_name("N")
      ->check(CLI::Validator(CheckNumber, ""));
  AddBytes(
      sub, "--keep-bytes", keep.bytes,
      "Maximum disk space of the commits to keep, such as 500MiB (default: "
      "10GiB)");
}

void AddDiffStyle(CLI::App& sub, DiffStyle& style, bool& json) {
  auto* names = sub.add_flag("--name-status", style.name_status,
                             "Print only the status and the name of each path");
  auto* stat =
      sub.add_flag("--stat", style.stat, "Print only counts of changed lines");
  auto* as_json = sub.add_flag("--json", json, "Print JSON");
  names->excludes(stat)->excludes(as_json);
  stat->excludes(as_json);
  sub.add_flag("-z", style.nul, "End each name with NUL, without quotes")
      ->needs(names);
  sub.add_option("--color", style.color,
                 "When to print colours (default: auto)")
      ->type_name("WHEN")
      ->check(CLI::IsMember({"auto", "always", "never"}));
}

void AddReport(CLI::App& app, Command& command, const char* name,
               const char* help, Result<int> (*run)(const Context&, bool),
               bool takes_transaction) {
  CLI::App* sub = app.add_subcommand(name, help);
  const auto json = std::make_shared<bool>(false);
  sub->add_flag("--json", *json, "Print JSON");
  sub->callback([&command, json, run, takes_transaction] {
    command.takes_transaction = takes_transaction;
    command.run = [json, run](const Context& context) {
      return run(context, *json);
    };
  });
}

std::vector<std::string> WithTrailing(std::vector<std::string> paths,
                                      const Context& context) {
  paths.insert(paths.end(), context.trailing.begin(), context.trailing.end());
  return paths;
}

}  // namespace txfs::cli
