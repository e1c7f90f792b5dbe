import FoundationEssentials
import FuzzInput
import JSON

/// Called by libFuzzer with each input.
#if LIBFUZZER
@_cdecl("LLVMFuzzerTestOneInput")
#endif
public func fuzzJSON(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt { fuzz(start, count, read) }

private func read(_ bytes: [UInt8]) {
    guard let value = JSONValue(plain: bytes, nesting: 64) else { return }
    require(
        (try? JSONDecoder().decode(JSONValue.self, from: Data(bytes))) == value,
        "plain text is read as Foundation reads it")
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    guard let expected = try? encoder.encode(value) else { broken("a value that was read can be written") }
    require((try? JSONText(value))?.bytes == Array(expected), "a value is written as Foundation writes it")
}
