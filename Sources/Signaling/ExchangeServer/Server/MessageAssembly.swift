import SignalWire

/// Puts the fragments of one message together (RFC 6455 §5.4), and no more of them than a message may hold.
struct MessageAssembly {
    /// What a frame makes of the message.
    enum Step: Equatable {
        /// More frames belong to it.
        case incomplete
        /// It is whole.
        case text([UInt8])
        /// It is whole, and not text.
        case binary
        /// The frame has no place here, or is not masked (RFC 6455 §5.1).
        case violation
        /// It is longer than ``SignalLimits/messageBytes``.
        case tooBig
    }

    /// What a frame says that it is.
    enum Kind {
        case continuation, text, binary
        /// An opcode that no data frame has.
        case other
    }

    /// What matters of a data frame (RFC 6455 §5.2), whoever reads frames.
    struct Frame<Part: Collection<UInt8>> {
        var kind: Kind
        var isFinal: Bool
        var isMasked: Bool
        /// One of the bits is set that belong to extensions, of which there are none.
        var hasReservedBits: Bool
        /// Unmasked.
        var part: Part
    }

    /// The message that has begun is text; nil if none has.
    private var isText: Bool?
    private var bytes: [UInt8] = []

    /// Takes a data frame. After a violation, or a message that is too big, nothing more is to be taken.
    mutating func take(_ frame: Frame<some Collection<UInt8>>) -> Step {
        guard frame.isMasked, !frame.hasReservedBits else { return .violation }
        let isText: Bool
        switch (frame.kind, self.isText) {
        case (.text, nil): isText = true
        case (.binary, nil): isText = false
        case (.continuation, let begun?): isText = begun
        case (.continuation, nil), (.text, .some), (.binary, .some), (.other, _): return .violation
        }
        self.isText = isText
        guard bytes.count + frame.part.count <= SignalLimits.messageBytes else { return .tooBig }
        bytes += frame.part
        guard frame.isFinal else { return .incomplete }
        defer {
            self.isText = nil
            bytes = []
        }
        return isText ? .text(bytes) : .binary
    }
}
