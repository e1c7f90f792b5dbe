import FuzzInput
import Identifiers

/// Called by libFuzzer with each input.
#if LIBFUZZER
@_cdecl("LLVMFuzzerTestOneInput")
#endif
public func fuzzNumber(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt { fuzz(start, count, read) }

/// The first byte says how many characters are left out; then come lines: what is put there, a number, and patterns.
private func read(_ bytes: [UInt8]) {
    guard let first = bytes.first else { return }
    let lines = bytes.dropFirst().split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        .map { String(decoding: $0, as: UTF8.self) }
    guard lines.count > 2, let number = TelephoneNumber(lines[1]) else { return }
    require(number.text == lines[1] && number.text.utf8.count <= 33, "a number is the text, and short")
    if let made = number.rewritten(without: Int(first % 17), prepending: lines[0]) {
        require(TelephoneNumber(made.text) == made, "what is made of a number is one")
    }
    var table = NumberTable<NumberPattern>()
    var patterns: [NumberPattern] = []
    for line in lines.dropFirst(2).prefix(64) {
        guard let pattern = NumberPattern(line) else { continue }
        require(NumberPattern(pattern.text) == pattern, "a pattern that was read is read again the same")
        if table.add(pattern, pattern) { patterns.append(pattern) }
    }
    let found = table[number]
    require((found != nil) == patterns.contains { $0.matches(number) }, "a table finds a pattern if one matches")
    require(found?.matches(number) != false, "the pattern that is found matches")
}
