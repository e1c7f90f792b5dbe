/// Why bytes are not an RTP packet, and where that shows.
public struct RTPParseError: Error, Equatable, Sendable, CustomStringConvertible {
    /// What is wrong with a packet.
    public struct Code: Equatable, Sendable {
        private let number: UInt8

        @_noAllocation @_noLocks
        private init(_ number: UInt8) { self.number = number }

        /// Fewer bytes than a fixed header has.
        public static var tooShort: Code {
            @_noAllocation @_noLocks get { Code(0) }
        }
        /// The version is not 2.
        public static var wrongVersion: Code {
            @_noAllocation @_noLocks get { Code(1) }
        }
        /// The list of contributing sources runs past the end.
        public static var truncatedSources: Code {
            @_noAllocation @_noLocks get { Code(2) }
        }
        /// The header extension runs past the end.
        public static var truncatedExtension: Code {
            @_noAllocation @_noLocks get { Code(3) }
        }
        /// The announced padding is zero, or longer than the packet.
        public static var badPadding: Code {
            @_noAllocation @_noLocks get { Code(4) }
        }
    }

    /// What is wrong.
    public let code: Code
    /// Byte offset in the packet.
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
            case .truncatedSources: "contributing sources run past the end"
            case .truncatedExtension: "header extension runs past the end"
            default: "padding does not fit"
            }
        return "not an RTP packet: \(problem) (byte \(offset))"
    }
}
