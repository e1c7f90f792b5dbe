import FuzzInput
import ICE

/// Called by libFuzzer with each input.
#if LIBFUZZER
@_cdecl("LLVMFuzzerTestOneInput")
#endif
public func fuzzCandidate(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt { fuzz(start, count, read) }

private func read(_ bytes: [UInt8]) {
    guard let candidate = Candidate(parsing: String(decoding: bytes, as: UTF8.self)) else { return }
    let text = candidate.attributeValue
    require(!text.utf8.contains { $0 < 0x20 || $0 > 0x7E }, "a candidate that was read is written in printable ASCII")
    require(Candidate(parsing: text) == candidate, "a candidate that was read is written and read again the same")
}
