import Core

/// Where a packet's header extension lies, and of which kind it is (RFC 3550 §5.3.1).
public struct HeaderExtension: Equatable, Sendable {
    /// 0xBEDE for elements with a one-byte header, 0x1000…0x100F for those with two (RFC 8285 §4.2, §4.3).
    public var profile: UInt16
    /// Byte range of the elements in the packet.
    public var data: Range<Int>

    /// Makes a description of an extension.
    @_noAllocation @_noLocks
    public init(profile: UInt16, data: Range<Int>) {
        self.profile = profile
        self.data = data
    }

    /// One element of an extension.
    public struct Element: Equatable, Sendable {
        /// 1…14 or 1…255; the session description (`extmap`) defines its meaning.
        public var identifier: UInt8
        /// Byte range of the value in the packet; may be empty in the two-byte form.
        public var data: Range<Int>

        @_noAllocation @_noLocks
        init(identifier: UInt8, data: Range<Int>) {
            self.identifier = identifier
            self.data = data
        }
    }

    /// Steps through the elements of one extension.
    public struct Cursor: Sendable {
        private enum Form { case oneByte, twoByte, unknown }
        private let form: Form
        private var offset: Int
        private let end: Int

        /// Starts before the first element.
        @_noAllocation @_noLocks
        public init(_ headerExtension: HeaderExtension) {
            if headerExtension.profile == 0xBEDE {
                form = .oneByte
            } else if headerExtension.profile & 0xFFF0 == 0x1000 {
                form = .twoByte
            } else {
                form = .unknown
            }
            offset = headerExtension.data.lowerBound
            end = headerExtension.data.upperBound
        }

        /// The next element, or `nil` after the last. An element that runs past the extension's end ends the walk.
        @_noAllocation @_noLocks
        public mutating func next(in packet: RawSpan) -> Element? {
            let limit = min(end, packet.byteCount)
            while offset < limit, let lead = packet.uint8(at: offset) {
                if lead == 0 {  // Padding between elements.
                    offset += 1
                    continue
                }
                let identifier: UInt8
                let start: Int
                let length: Int
                switch form {
                case .unknown:
                    return nil
                case .oneByte:
                    identifier = lead >> 4
                    start = offset + 1
                    length = Int(lead & 0x0F) + 1
                    // 15 is reserved and ends processing; 0 with a length is not a padding byte (RFC 8285 §4.2).
                    guard identifier != 15, identifier != 0 else { return stop() }
                case .twoByte:
                    guard offset + 1 < limit, let size = packet.uint8(at: offset + 1) else { return stop() }
                    identifier = lead
                    start = offset + 2
                    length = Int(size)
                }
                guard start + length <= limit else { return stop() }
                offset = start + length
                return Element(identifier: identifier, data: start..<offset)
            }
            return nil
        }

        @_noAllocation @_noLocks
        private mutating func stop() -> Element? {
            offset = end
            return nil
        }
    }
}
