#include <algorithm>
#include <iterator>
#include <ranges>
#include <utility>

#include "cli/shell/walker.h"

namespace txfs::cli {
namespace {

using LetterKind = Letters::Kind;

constexpr size_t kMaxParameterDepth = 60;

const Json* Find(const Json& object, const char* key, const char* member) {
  const Json& inner = GetMember(object, key);
  if (!inner.is_object()) return nullptr;
  const auto found = inner.find(member);
  return found == inner.end() ? nullptr : &*found;
}

std::string TypeText(const Json& object) { return GetBytes(object, "Type"); }

/// Command substitution removes the newlines at the end.
std::string WithoutNewlines(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

}  // namespace

Letters Walker::Expand(const Json& word, Flow& used) {
  Letters letters;
  for (const Json& part : GetMember(word, "Parts")) {
    ExpandPart(part, false, letters, used);
  }
  return letters;
}

Walker::Words Walker::Fields(const Json& words, Flow& used) {
  Words fields;
  for (const Json& word : words) AddWords(Expand(word, used), fields);
  return fields;
}

void Walker::AddWords(const Letters& letters, Words& words) {
  Words split = letters.Split(surroundings_.home, kMaxWords + 1);
  std::ranges::move(split, std::back_inserter(words));
  Bound(words);
}

void Walker::Bound(Words& words) {
  if (words.size() <= kMaxWords) return;
  words.resize(kMaxWords);
  NoteBound("a command or a list has too many words");
}

void Walker::AddExpansion(std::string_view text, bool in_quotes,
                          Letters& letters) {
  const auto set = state_.variables.find("IFS");
  if (in_quotes || set == state_.variables.end()) {
    letters.Add(text, in_quotes ? LetterKind::kQuoted : LetterKind::kExpanded);
    return;
  }
  const Words& values = set->second.values;
  const bool is_known = values.size() == 1 && values[0].known;
  if (!is_known) Note("the value of IFS is not known");
  const std::string separators = is_known ? values[0].text : " \t\n";
  for (const char& c : text) {
    const std::string_view one(&c, 1);
    const bool is_blank = one.find_first_of(" \t\n") == 0;
    letters.Add(one, separators.contains(c) ? LetterKind::kSplit
                     : is_blank             ? LetterKind::kQuoted
                                            : LetterKind::kExpanded);
  }
}

void Walker::AddUnquoted(std::string_view raw, Letters& letters) {
  const bool has_separators = state_.variables.contains("IFS");
  for (size_t i = 0; i < raw.size(); ++i) {
    const bool is_escaped = raw[i] == '\\' && i + 1 < raw.size();
    const std::string_view one = raw.substr(i, is_escaped ? 2 : 1);
    const bool may_split =
        has_separators || std::string_view(" \t\n").contains(raw[i]);
    if (may_split && !is_escaped) {
      AddExpansion(one, false, letters);
    } else {
      letters.AddPlain(one);
    }
    i += one.size() - 1;
  }
}

void Walker::ExpandPart(const Json& part, bool in_quotes, Letters& letters,
                        Flow& used) {
  const Level deeper(nesting_);
  if (IsTooMuch()) return;
  const std::string type = TypeText(part);
  if (type == "Lit") {
    const std::string value = GetBytes(part, "Value");
    if (in_quotes) {
      letters.AddInQuotes(value);
    } else {
      letters.AddPlain(value);
    }
  } else if (type == "SglQuoted") {
    letters.MarkQuoted();
    const std::string value = GetBytes(part, "Value");
    if (GetBool(part, "Dollar")) {
      letters.AddEscaped(value);
    } else {
      letters.Add(value, LetterKind::kQuoted);
    }
  } else if (type == "DblQuoted") {
    letters.MarkQuoted();
    for (const Json& inner : GetMember(part, "Parts")) {
      ExpandPart(inner, true, letters, used);
    }
  } else if (type == "ParamExp") {
    ExpandParameter(part, in_quotes, letters, used);
  } else if (type == "CmdSubst") {
    searched_.insert(&part);
    Level script(depth_);
    Flow out = InSubshell(GetMember(part, "Stmts"), {});
    used.feeders.insert(used.feeders.end(), out.feeders.begin(),
                        out.feeders.end());
    used.reads.insert(used.reads.end(), out.reads.begin(), out.reads.end());
    if (out.literal) {
      AddExpansion(WithoutNewlines(*std::move(out.literal)), in_quotes,
                   letters);
    } else {
      letters.Add(SourceOf(part), LetterKind::kUnknown);
    }
  } else if (type == "ProcSubst") {
    searched_.insert(&part);
    Level script(depth_);
    if (SourceOf(part).starts_with(">(")) {
      // It reads what the command writes, which passes on what it reads.
      const Flow piped = piped_ == nullptr ? Flow{} : *piped_;
      InSubshell(GetMember(part, "Stmts"), piped);
      letters.Add(SourceOf(part), LetterKind::kUnknown);
      return;
    }
    Flow out = InSubshell(GetMember(part, "Stmts"), {});
    used.feeders.insert(used.feeders.end(), out.feeders.begin(),
                        out.feeders.end());
    used.reads.insert(used.reads.end(), out.reads.begin(), out.reads.end());
    letters.Add(SourceOf(part), LetterKind::kUnknown);
    // A file that a script may be read from.
    state_.written[SourceOf(part)] = std::move(out);
  } else {
    Search(part, {}, 0);
    letters.Add(SourceOf(part),
                type == "ExtGlob" ? LetterKind::kPlain : LetterKind::kUnknown);
  }
}

std::optional<Walker::Words> Walker::ValueOf(const std::string& name) const {
  if (const auto set = state_.variables.find(name);
      set != state_.variables.end()) {
    return set->second.values;
  }
  const auto known = [](std::string text) {
    return Words{policy::KnownWord(std::move(text))};
  };
  if (name == "0" && state_.variables.contains("$0")) {
    return state_.variables.at("$0").values;
  }
  if (name == "IFS") return known(" \t\n");
  if (name == "HOME") return known(surroundings_.home);
  if (name == "TMPDIR") {
    return known(surroundings_.temporary.empty() ? "/tmp"
                                                 : surroundings_.temporary);
  }
  if (name == "PWD" && !state_.directory.empty()) {
    return known(state_.directory);
  }
  if (!state_.knows_arguments) return std::nullopt;
  if (name == "@" || name == "*") return state_.arguments;
  const bool is_number =
      !name.empty() && name.size() < 4 &&
      name.find_first_not_of("0123456789") == std::string::npos;
  if (is_number && name != "0") {
    const size_t at = static_cast<size_t>(std::stoi(name)) - 1;
    if (at < state_.arguments.size()) return Words{state_.arguments[at]};
    return known("");
  }
  return std::nullopt;
}

void Walker::ExpandParameter(const Json& part, bool in_quotes, Letters& letters,
                             Flow& used) {
  const LetterKind kind =
      in_quotes ? LetterKind::kQuoted : LetterKind::kExpanded;
  const std::string name = GetBytes(GetMember(part, "Param"), "Value");
  for (const char* key : {"Index", "Slice"}) {
    if (!part.contains(key)) continue;
    Search(GetMember(part, key), {}, 0);
    EvaluateArithmetic(GetMember(part, key));
  }
  if (GetBool(part, "Excl") || SourceOf(part).ends_with("@P}")) {
    EvaluateValue(name);
  }
  std::optional<Words> value = ValueOf(name);
  if (nesting_ > kMaxParameterDepth) value.reset();
  if (const auto set = state_.variables.find(name);
      set != state_.variables.end()) {
    const Flow& source = set->second.source;
    used.feeders.insert(used.feeders.end(), source.feeders.begin(),
                        source.feeders.end());
    used.reads.insert(used.reads.end(), source.reads.begin(),
                      source.reads.end());
  }
  const auto unknown = [&]() {
    letters.Add(SourceOf(part), LetterKind::kUnknown);
  };
  if (GetBool(part, "Excl") && value && value->size() == 1 &&
      (*value)[0].known) {
    value = ValueOf((*value)[0].text);
  } else if (GetBool(part, "Excl") || GetBool(part, "Length") ||
             GetBool(part, "Width")) {
    return unknown();
  }
  if (part.contains("Index") && value) {
    const Json* index = Find(part, "Index", "Parts");
    const std::string at = index != nullptr && index->size() == 1
                               ? GetBytes((*index)[0], "Value")
                               : "";
    const bool is_number =
        !at.empty() && at.size() < 6 &&
        at.find_first_not_of("0123456789") == std::string::npos;
    if (is_number) {
      const auto i = static_cast<size_t>(std::stoi(at));
      if (i >= value->size()) return;
      value = Words{(*value)[i]};
    } else if (at != "@" && at != "*" && value->size() != 1) {
      return unknown();
    }
  } else if (value && name != "@" && name != "*" && value->size() > 1) {
    value->resize(1);
  }
  std::string op;
  if (const Json* word = Find(part, "Exp", "Word");
      word != nullptr || part.contains("Exp")) {
    // ":-" and the like stand behind the name.
    const uint64_t end =
        GetUint(GetMember(GetMember(part, "Param"), "End"), "Offset");
    if (source_ != nullptr && end + 2 <= source_->size()) {
      op = source_->substr(end, 2);
    }
    Letters other;
    if (word != nullptr) {
      for (const Json& inner : GetMember(*word, "Parts")) {
        const bool is_literal = TypeText(inner) == "Lit" && !in_quotes;
        if (is_literal) {
          // Its blanks separate words, as those of the value would.
          AddUnquoted(GetBytes(inner, "Value"), other);
        } else {
          ExpandPart(inner, in_quotes, other, used);
        }
      }
    }
    const bool uses_default = op.starts_with(":-") || op.starts_with(":=") ||
                              op.starts_with('-') || op.starts_with('=');
    const bool uses_other = op.starts_with(":+") || op.starts_with('+');
    const bool is_set = value && std::ranges::any_of(*value, [](const auto& w) {
                          return !w.text.empty();
                        });
    const bool is_checked = op.starts_with(":?") || op.starts_with('?');
    // What the environment has is not known: the text says what it may be.
    if (uses_default && (!value || !is_set) && word != nullptr) {
      letters.Add(other);
      return;
    }
    if (value && uses_other) {
      if (is_set) letters.Add(other);
      return;
    }
    // Trimming, and the rest: the blanks that are left of IFS are blanks.
    const bool keeps = uses_default || is_checked;
    if (value && !keeps && name == "IFS") {
      letters.Add(" ", kind);
      return;
    }
    if (!keeps) return unknown();
  }
  if (part.contains("Slice") || part.contains("Repl") ||
      part.contains("Names")) {
    Search(part, {}, 0);
    if (name == "IFS" && value) {
      letters.Add(" ", kind);
      return;
    }
    return unknown();
  }
  if (!value) return unknown();
  for (size_t i = 0; i < value->size(); ++i) {
    // "$@" makes several words, as if it was not quoted.
    if (i > 0) letters.Add(" ", LetterKind::kExpanded);
    const policy::Word& word = (*value)[i];
    if (word.known) {
      AddExpansion(word.text, in_quotes, letters);
    } else {
      AddExpansion(word.text.substr(0, word.known_prefix), in_quotes, letters);
      letters.Add(
          word.text.substr(std::min(word.known_prefix, word.text.size())),
          LetterKind::kUnknown);
    }
  }
}

}  // namespace txfs::cli
