import ControlWire
import Core
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
    // The same lines as an agent's messages, and as events of its device.
    var door = MCPDoor(version: "1", isReadOnly: false) { _, _ in true }
    var outputs: [MCPDoor.Output] = []
    for line in lines {
        door.handle(.line(line), at: .zero, into: &outputs)
        if case .whole(let bytes) = line { door.handle(.event(bytes), at: .zero, into: &outputs) }
    }
    for case .send(let line) in outputs { require(line.last == UInt8(ascii: "\n"), "a message ends with its line") }
    // The same bytes as a path and a body of HTTP, and as lines of a history on disk.
    let parts = bytes.split(separator: UInt8(ascii: "\n"), maxSplits: 1)
    let target = String(decoding: parts.first ?? [], as: UTF8.self)
    for method in ["GET", "POST"] {
        let body = parts.count > 1 ? Array(parts[1]) : []
        _ = try? ControlOperation(
            ControlHTTPRequest(method, target, contentType: "application/json", lastEventID: target, body: body))
    }
    let history = EventHistory(
        id: 1, run: 1,
        after: EventArchive(String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init)))
    var reader = EventReader(EventSubscription(start: .oldest), of: history)
    _ = reader.next(of: history, at: .zero)
    // What a device says is read by programs, which it must not bring down either.
    if let event = ControlCoding.decode(ControlEvent.self, from: bytes) { _ = ControlCoding.line(event) }
    _ = ControlCoding.decode(ControlReply.self, from: bytes)
}
