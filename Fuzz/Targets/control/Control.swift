import ControlWire
import FuzzInput

/// Called by libFuzzer with each input.
#if LIBFUZZER
@_cdecl("LLVMFuzzerTestOneInput")
#endif
public func fuzzControl(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt { fuzz(start, count, read) }

private func read(_ bytes: [UInt8]) {
    var cutter = LineCutter()
    var lines: [LineCutter.Line] = []
    cutter.take(bytes, into: &lines)
    cutter.finish(into: &lines)
    for line in lines {
        guard let request = try? ControlRequest(line) else { continue }
        let written = ControlCoding.line(request)
        // Escaped characters may grow when written, beyond what is read.
        guard written.count <= ControlLimits.requestBytes else { continue }
        require((try? ControlRequest(line: Array(written.dropLast()))) == request, "a request reads back as written")
    }
    // What a device says is read by programs, which it must not bring down either.
    if let event = ControlCoding.decode(ControlEvent.self, from: bytes) { _ = ControlCoding.line(event) }
    _ = ControlCoding.decode(ControlReply.self, from: bytes)
}
