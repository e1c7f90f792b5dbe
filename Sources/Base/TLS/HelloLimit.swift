/// Finds a client's hello that is longer than any client has reason to send, before OpenSSL sees it.
///
/// A hello begins with its length, and OpenSSL sets memory aside for all of it at once, 175 kB for the longest that it takes. And for
/// as long as the connection lasts it keeps a pointer for each cipher that a hello names, however often: up to six times the hello's
/// length.
///
/// Reads the records of a handshake before its encryption (RFC 8446 §4, §5.1), however they are cut.
struct HelloLimit: Sendable {
    /// Bytes of a hello. Those of browsers, with keys of post-quantum groups, have some 2,000.
    static let bytes = 4_096

    /// The header of the record, or of the message in it, as far as it has come.
    private var (recordHead, messageHead) = (Head(), Head())
    private var isHandshake = false
    /// What is still to come of the record and of the message.
    private var (recordLeft, messageLeft) = (0, 0)

    private struct Head: Sendable {
        private var value: UInt64 = 0
        private var count = 0

        /// Takes a byte.
        ///
        /// - Returns: All of them as a number, once there are `size`.
        mutating func take(_ byte: UInt8, size: Int) -> UInt64? {
            value = value << 8 | UInt64(byte)
            count += 1
            guard count == size else { return nil }
            defer { self = Head() }
            return value
        }
    }

    /// Whether the next bytes of the client contain no hello that is too long.
    mutating func admits(_ bytes: borrowing Span<UInt8>) -> Bool {
        var index = 0
        while index < bytes.count {
            if recordLeft == 0 {
                // Kind, version and length.
                if let head = recordHead.take(bytes[index], size: 5) {
                    isHandshake = head >> 32 == 22
                    recordLeft = Int(head & 0xFFFF)
                }
                index += 1
            } else if !isHandshake || messageLeft > 0 {
                let passed = min(bytes.count - index, isHandshake ? min(recordLeft, messageLeft) : recordLeft)
                index += passed
                recordLeft -= passed
                if isHandshake { messageLeft -= passed }
            } else {
                // Kind and length.
                if let head = messageHead.take(bytes[index], size: 4) {
                    messageLeft = Int(head & 0xFF_FFFF)
                    if head >> 24 == 1, messageLeft > Self.bytes { return false }
                }
                index += 1
                recordLeft -= 1
            }
        }
        return true
    }
}
