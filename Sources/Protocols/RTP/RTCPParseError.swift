/// Why bytes are not a compound RTCP packet, and where that shows.
public struct RTCPParseError: Error, Equatable, Sendable, CustomStringConvertible {
    /// What is wrong with a compound packet.
    public struct Code: Equatable, Sendable {
        private let number: UInt8

        @_noAllocation @_noLocks
        private init(_ number: UInt8) { self.number = number }

        /// Fewer bytes than a common header has.
        public static var tooShort: Code {
            @_noAllocation @_noLocks get { Code(0) }
        }
        /// A packet's version is not 2.
        public static var wrongVersion: Code {
            @_noAllocation @_noLocks get { Code(1) }
        }
        /// The type is outside 192…223, so this is no RTCP.
        public static var wrongType: Code {
            @_noAllocation @_noLocks get { Code(2) }
        }
        /// A packet's length runs past the datagram's end, or the datagram has bytes left over.
        public static var wrongLength: Code {
            @_noAllocation @_noLocks get { Code(3) }
        }
        /// Padding before the last packet, or more padding than packet.
        public static var badPadding: Code {
            @_noAllocation @_noLocks get { Code(4) }
        }
        /// A packet is too short for what its header announces.
        public static var truncatedBody: Code {
            @_noAllocation @_noLocks get { Code(5) }
        }
    }

    /// What is wrong.
    public let code: Code
    /// Byte offset in the datagram.
    public let offset: Int

    @_noAllocation @_noLocks
    init(_ code: Code, at offset: Int) {
        self.code = code
        self.offset = offset
    }

    /// A sentence for logs.
    public var description: String {
        let problem =
            switch code {
            case .tooShort: "shorter than a header"
            case .wrongVersion: "version is not 2"
            case .wrongType: "type is outside 192…223"
            case .wrongLength: "lengths do not add up to the datagram"
            case .badPadding: "padding does not fit"
            default: "shorter than its header announces"
            }
        return "not an RTCP packet: \(problem) (byte \(offset))"
    }
}
