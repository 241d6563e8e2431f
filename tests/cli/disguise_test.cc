#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/cli/disguise_columns.h"
#include "tests/cli/shell_cases.h"
#include "tests/repeat.h"

namespace txfs::cli {
namespace {

constexpr const char* kTable =
    TXFS_SOURCE_DIR "/tests/policy/cases/disguises.txt";
/// Cells that are judged as one text: it saves starts of the parser. Each may
/// have a script of its own, of which a text may have 32.
constexpr size_t kBatch = 20;
const std::string kMark = "cell-";  ///< a program that is none
constexpr size_t kGroup = 10;       ///< of letters in a line

/// The rules that stop something, with the first of their examples that is a
/// simple command, or else the first.
std::vector<DisguiseRow> DisguiseRows() {
  std::vector<DisguiseRow> rows;
  for (const policy::ExecRule& rule : BuiltinRules().exec_rules()) {
    if (rule.action <= policy::Action::kAudit) continue;
    DisguiseRow row{.rule = &rule, .text = {}, .words = {}};
    for (const policy::ExecExample& example : rule.examples) {
      if (!example.matches) continue;
      const auto words = policy::SimpleWords(example.text);
      if (row.text.empty() || words) row.text = example.text;
      if (!words) continue;
      for (const policy::Word& word : *words) row.words.push_back(word.text);
      break;
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

/// S: the rule of the row stops it; s: another one does; u: it is not stopped,
/// and not known; "!": neither.
char LetterOf(const CommandVerdict& verdict, const DisguiseRow& row) {
  if (IsHindered(verdict)) {
    return IsMatchedBy(verdict, row.rule->id) ? 'S' : 's';
  }
  return verdict.consequence >= policy::Class::kUnknown ? 'u' : '!';
}

/// One line that runs `texts`, with marks between them.
std::string InOneLine(const std::vector<std::string>& texts) {
  std::string line;
  for (size_t i = 0; i < texts.size(); ++i) {
    line += kMark + std::to_string(i) + "; ( " + texts[i];
    // A here-document ends with its line.
    line += texts[i].contains('\n') ? "\n)\n" : " ); ";
  }
  return line + kMark + "end";
}

/// The letters of `rows` in `disguise`, as far as the rules of the rows match
/// in a text with all of them.
std::string LettersTogether(const std::vector<const DisguiseRow*>& rows,
                            const std::string& whole) {
  const CommandVerdict verdict = VerdictOn(whole);
  std::string letters(rows.size(), '!');
  size_t cell = rows.size();
  for (size_t i = 0; i < verdict.parts.size(); ++i) {
    const policy::Command& command = verdict.reading.parts[i].command;
    if (command.program.text.starts_with(kMark)) {
      const std::string number = command.program.text.substr(kMark.size());
      cell = number == "end" ? rows.size() : std::stoul(number);
    }
    if (cell >= rows.size()) continue;
    for (const ExecMatch& match : verdict.parts[i].matches) {
      const bool is_own = match.rule == rows[cell]->rule;
      if (is_own && match.action > policy::Action::kAudit) letters[cell] = 'S';
    }
  }
  return letters;
}

/// The letters of `rows`, to which `disguise` applies.
std::string LettersOf(const Disguise& disguise,
                      const std::vector<const DisguiseRow*>& rows) {
  std::vector<std::string> inside;
  std::vector<std::string> texts;
  for (const DisguiseRow* row : rows) {
    inside.push_back(row->text);
    texts.push_back(Disguised(disguise, *row).value_or(""));
  }
  const DisguiseRow all{
      .rule = nullptr, .text = InOneLine(inside), .words = {}};
  std::string letters = LettersTogether(
      rows, RunsText(disguise) ? FilledIn(disguise, all) : InOneLine(texts));
  // What else stops it, or is not known, is told apart where it is alone.
  for (size_t i = 0; i < rows.size(); ++i) {
    if (letters[i] == 'S') continue;
    letters[i] = LetterOf(VerdictOn(texts[i]), *rows[i]);
    EXPECT_NE(letters[i], '!') << rows[i]->rule->id << ", " << disguise.name
                               << " is allowed: " << texts[i];
  }
  return letters;
}

std::string ColumnOf(const Disguise& disguise,
                     const std::vector<DisguiseRow>& rows) {
  std::string column;
  std::vector<const DisguiseRow*> some;
  std::string letters;
  for (const DisguiseRow& row : rows) {
    const bool applies = Disguised(disguise, row).has_value();
    column += applies ? '?' : '-';
    if (applies) some.push_back(&row);
    if (some.size() < kBatch && &row != &rows.back()) continue;
    letters += LettersOf(disguise, some);
    some.clear();
  }
  for (size_t at = 0; const char letter : letters) {
    at = column.find('?', at);
    column[at] = letter;
  }
  return column;
}

std::string LegendOfTable() {
  std::string text =
      "# Each built-in rule that stops something, in each disguise.\n"
      "# tests/cli/disguise_test.cc compares it. To write it anew:\n"
      "#   TXFS_TEST_UPDATE=1 build/ci/tests/cli_test "
      "--gtest_filter='DisguiseTest.*'\n"
      "#\n"
      "# S  stopped by the rule, outside of `txfs run`\n"
      "# s  stopped by another rule\n"
      "# u  not stopped, and of class `unknown`: `txfs run` confines it\n"
      "# -  the disguise does not apply, for the reason given below\n"
      "#\n";
  size_t number = 0;
  for (const Disguise& disguise : Disguises()) {
    std::string line = "# " + std::to_string(++number);
    line.resize(6, ' ');
    line += disguise.name;
    if (const std::string reason = ReasonOf(disguise); !reason.empty()) {
      line.resize(std::max<size_t>(line.size() + 2, 30), ' ');
      line += "-: " + reason;
    }
    text += line + "\n";
  }
  return text + "\n";
}

/// The whole table; with "*" in columns that the scale of the tests leaves out.
std::string Table(const std::vector<DisguiseRow>& rows, bool all) {
  std::vector<std::string> lines(rows.size());
  Picks picks(FirstSeed());
  uint64_t next = picks.Next();
  size_t number = 0;
  for (const Disguise& disguise : Disguises()) {
    const bool is_picked = number + 1 == next;
    if (is_picked) next = picks.Next();
    const std::string column = all || is_picked ? ColumnOf(disguise, rows)
                                                : std::string(rows.size(), '*');
    for (size_t i = 0; i < rows.size(); ++i) {
      if (number % kGroup == 0) lines[i] += ' ';
      lines[i] += column[i];
    }
    ++number;
  }
  std::string text = LegendOfTable();
  for (size_t i = 0; i < rows.size(); ++i) {
    std::string name = rows[i].rule->id;
    name.erase(0, std::string_view("txfs-cmd-").size());
    name.resize(24, ' ');
    text += name + lines[i] + "\n";
  }
  return text;
}

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(DisguiseTest, EachRuleStopsItsCommandInEachDisguiseOrSaysItIsNotKnown) {
  const bool updates = std::getenv("TXFS_TEST_UPDATE") != nullptr;
  const std::string table = Table(DisguiseRows(), updates);
  if (updates) {
    std::ofstream(kTable) << table;
    return;
  }
  std::ostringstream committed;
  committed << std::ifstream(kTable).rdbuf();
  const auto expected = LinesOf(committed.str());
  auto actual = LinesOf(table);
  EXPECT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < std::min(actual.size(), expected.size()); ++i) {
    for (size_t at = 0; at < actual[i].size() && actual[i][0] != '#'; ++at) {
      const bool is_left_out = actual[i][at] == '*' && at < expected[i].size();
      if (is_left_out) actual[i][at] = expected[i][at];
    }
    EXPECT_EQ(actual[i], expected[i]) << "line " << i + 1 << " of " << kTable;
  }
}

}  // namespace
}  // namespace txfs::cli
