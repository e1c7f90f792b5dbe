/// Puts the fragments of one message together (RFC 6455 §5.4), up to the length that a message may have.
package struct MessageAssembly: Sendable {
    /// The effect of a frame on the message.
    package enum Step: Equatable, Sendable {
        /// More frames belong to the message.
        case incomplete
        /// A text message is complete.
        case text([UInt8])
        /// A binary message is complete.
        case binary([UInt8])
        /// The frame is out of place, or is masked where it must not be, or is not masked where it must be (RFC 6455 §5.1).
        case violation
        /// The message is longer than allowed.
        case tooBig
    }

    /// The kind of a frame, by its opcode.
    package enum Kind: Sendable {
        case continuation, text, binary
        /// An opcode that no data frame has.
        case other
    }

    /// The parts of a data frame that matter here (RFC 6455 §5.2), independent of the library that reads frames.
    package struct Frame<Part: Collection<UInt8>> {
        let kind: Kind
        let isFinal: Bool
        let isMasked: Bool
        let hasReservedBits: Bool
        let part: Part

        /// - Parameters:
        ///   - hasReservedBits: Whether a bit is set that belongs to extensions. No extension is supported.
        ///   - part: The payload, unmasked.
        package init(kind: Kind, isFinal: Bool, isMasked: Bool, hasReservedBits: Bool, part: Part) {
            self.kind = kind
            self.isFinal = isFinal
            self.isMasked = isMasked
            self.hasReservedBits = hasReservedBits
            self.part = part
        }
    }

    private let limit: Int
    private let expectsMasks: Bool
    /// Whether the message that has begun is text; nil if none has begun.
    private var isText: Bool?
    private var bytes: [UInt8] = []

    /// - Parameters:
    ///   - limit: Bytes that a message may have.
    ///   - expectsMasks: True at a server: a client masks every frame, and a server masks none.
    package init(limit: Int, expectsMasks: Bool) {
        self.limit = limit
        self.expectsMasks = expectsMasks
    }

    /// Takes a data frame. After a violation, or a message that is too long, no further frame may be passed in.
    package mutating func take(_ frame: Frame<some Collection<UInt8>>) -> Step {
        guard frame.isMasked == expectsMasks, !frame.hasReservedBits else { return .violation }
        let isText: Bool
        switch (frame.kind, self.isText) {
        case (.text, nil): isText = true
        case (.binary, nil): isText = false
        case (.continuation, let begun?): isText = begun
        case (.continuation, nil), (.text, .some), (.binary, .some), (.other, _): return .violation
        }
        self.isText = isText
        guard bytes.count + frame.part.count <= limit else { return .tooBig }
        bytes += frame.part
        guard frame.isFinal else { return .incomplete }
        defer {
            self.isText = nil
            bytes = []
        }
        return isText ? .text(bytes) : .binary(bytes)
    }
}
