import FuzzInput

/// Called by libFuzzer with each input: the frames of a WebSocket, put together to messages. Of each frame the first byte is as
/// on the wire (RFC 6455 §5.2), the second the mask bit and a length that counts hundreds of bytes above 99.
#if LIBFUZZER
@_cdecl("LLVMFuzzerTestOneInput")
#endif
public func fuzzWebSocket(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt { fuzz(start, count, read) }

/// Bytes that a message may have.
private let limit = 65_536

private func read(_ bytes: [UInt8]) {
    var assembly = MessageAssembly(limit: limit, expectsMasks: true)
    // What a message must become, told independently.
    var parts: [UInt8]?
    var rest = bytes[...]
    while let first = rest.popFirst(), let second = rest.popFirst() {
        let length = Int(second & 0x7F)
        let part: [UInt8]
        if length > 99 {
            part = [UInt8](repeating: first, count: (length - 99) * 2_300)
        } else {
            part = Array(rest.prefix(length))
            rest = rest.dropFirst(length)
        }
        let kind: MessageAssembly.Kind =
            switch first & 0x0F {
            case 0: .continuation
            case 1: .text
            case 2: .binary
            default: .other
            }
        let (isFinal, isMasked) = (first & 0x80 != 0, second & 0x80 != 0)
        let step = assembly.take(
            MessageAssembly.Frame(
                kind: kind, isFinal: isFinal, isMasked: isMasked, hasReservedBits: first & 0x70 != 0, part: part))
        let isFit = isMasked && first & 0x70 == 0 && kind != .other && (kind == .continuation) == (parts != nil)
        require(isFit == (step != .violation), "a frame is refused where it has no place, and only there")
        guard isFit else { return }
        parts = (parts ?? []) + part
        let isTooBig = (parts?.count ?? 0) > limit
        require(isTooBig == (step == .tooBig), "a message is too big above the limit, and only there")
        if isTooBig { return }
        switch step {
        case .incomplete: require(!isFinal, "a message goes on until its last frame")
        case .text(let message):
            require(isFinal && message == parts, "a message is all of its parts in their order")
            parts = nil
        case .binary(let message):
            require(isFinal && message == parts, "a binary message is all of its parts in their order")
            parts = nil
        case .violation, .tooBig: return
        }
    }
}
