import NIOCore
import NIOWebSocket
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

    private var opcode: WebSocketOpcode?
    private var bytes: [UInt8] = []

    /// Takes a data frame.
    mutating func take(_ frame: WebSocketFrame) -> Step {
        guard frame.maskKey != nil, !frame.rsv1, !frame.rsv2, !frame.rsv3 else { return .violation }
        switch (frame.opcode, opcode) {
        case (.text, nil), (.binary, nil): opcode = frame.opcode
        case (.continuation, .some): break
        default: return .violation
        }
        let part = frame.unmaskedData
        guard bytes.count + part.readableBytes <= SignalLimits.messageBytes else { return .tooBig }
        bytes += part.readableBytesView
        guard frame.fin else { return .incomplete }
        defer {
            opcode = nil
            bytes = []
        }
        return opcode == .text ? .text(bytes) : .binary
    }
}
