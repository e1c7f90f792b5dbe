/// Cuts a TCP stream into the frames of AudioSocket: a byte for the kind, the length in two bytes, and the payload.
struct AudioSocketReader: Sendable {
    struct Frame: Equatable, Sendable {
        let kind: UInt8
        let payload: [UInt8]
    }

    static let headerBytes = 3
    static let mostPayloadBytes = 0xFFFF

    /// The beginning of an incomplete frame; shorter than the longest frame once ``next()`` has returned nothing.
    private var bytes: [UInt8] = []
    private var start = 0

    mutating func append(_ piece: [UInt8]) {
        bytes.removeSubrange(..<start)
        start = 0
        bytes += piece
    }

    /// The next frame that has come as a whole.
    mutating func next() -> Frame? {
        guard bytes.count - start >= Self.headerBytes else { return nil }
        let length = Int(bytes[start + 1]) << 8 | Int(bytes[start + 2])
        let payload = start + Self.headerBytes
        guard bytes.count - payload >= length else { return nil }
        let frame = Frame(kind: bytes[start], payload: Array(bytes[payload..<payload + length]))
        start = payload + length
        return frame
    }
}
