import FuzzInput
import Tracing

/// Called by libFuzzer with each input.
#if LIBFUZZER
@_cdecl("LLVMFuzzerTestOneInput")
#endif
public func fuzzTraceparent(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt { fuzz(start, count, read) }

private func read(_ bytes: [UInt8]) {
    guard let context = TraceContext(String(decoding: bytes, as: UTF8.self)) else { return }
    require(bytes.count <= TraceContext.mostBytes, "a text that is read is short")
    let text = context.description
    require(text.utf8.count == 55 && TraceContext(text) == context, "what is read is written, and read again the same")
}
