public import Core

/// The telephone side of the connection to a voice bot, as a value: its inputs are the call's events and the bot's
/// messages, its outputs are messages to send and sound to play to the caller.
///
/// All wires share this interface, so that the driver of the sockets knows none of them. The rules:
///
/// - The driver dials the bot as ``transport`` says, and gives ``WireInput/connected(_:)`` once messages can be sent. Nothing
///   is sent before that, and no sound before the messages that open the stream.
/// - Each message of the bot is one ``WireInput/message(_:)``; bytes of a TCP stream come in pieces of any size. The
///   bot may send anything. A message that the wire cannot follow is a ``WireOutput/fault(_:)``, which the driver
///   reports and the wire counts; the call continues. After more faults than ``WireLimits`` allows, and when the wire
///   cannot follow the connection any further, comes ``WireOutput/failed(_:)``.
/// - After ``WireOutput/failed(_:)``, ``WireOutput/hangUp(drains:)`` and ``WireOutput/close`` the wire has ended and
///   ignores all inputs. The driver closes the connection, if it is still open.
/// - A connection that the bot closes is no input. The driver decides what it means for the call.
public protocol VoiceWire: ProtocolCore, Sendable where Input == WireInput, Output == WireOutput {
    /// How the bot is dialled.
    var transport: WireTransport { get }
    /// Subprotocols of a WebSocket from which the bot may choose (RFC 6455 §1.9).
    var subprotocols: [String] { get }
    /// The format of ``WireInput/sound(_:)``.
    var callerFormat: WireFormat { get }
    /// Counts of received messages and of faults.
    var counts: WireCounts { get }
    /// Whether the bot takes part in the call, so that the call can be answered. It is once the wire is connected, except with
    /// wires whose bot confirms the session first.
    var isReady: Bool { get }
    /// Bytes of the bot's sound that may wait to be played before no more is read from it.
    var backlogBytes: Int { get }
}

extension VoiceWire {
    /// None.
    public var subprotocols: [String] { [] }
    /// The bot takes part from the beginning.
    public var isReady: Bool { true }
    /// The usual bound, ``WireLimits/backlogBytes``.
    public var backlogBytes: Int { WireLimits.backlogBytes }
}

/// A wire over a WebSocket: a stream of messages in one service's form. A new one is one file, with its ``StreamForm`` and the public
/// type that holds the stream.
protocol StreamWire: VoiceWire {
    associatedtype Form: StreamForm
    var stream: MessageStream<Form> { get set }
}

extension StreamWire {
    /// A WebSocket.
    public var transport: WireTransport { .webSocket }
    /// The format of the caller's sound.
    public var callerFormat: WireFormat { stream.callerFormat }
    /// Counts of received messages and of faults.
    public var counts: WireCounts { stream.counts }
    /// Whether the bot takes part.
    public var isReady: Bool { stream.isReady }
    /// Nothing happens by time alone.
    public var nextDeadline: Instant? { nil }

    /// Takes one input.
    public mutating func handle(_ input: WireInput, at now: Instant, into outbox: inout [WireOutput]) {
        stream.handle(input, at: now, into: &outbox)
    }
}

/// How a bot is dialled.
public enum WireTransport: Hashable, Sendable {
    /// A WebSocket (RFC 6455).
    case webSocket
    /// A TCP connection.
    case tcp
    /// A WebRTC leg, which is offered by HTTP (``OfferExchange``).
    case offer
}

/// An event on the telephone's side of a wire, or a message of the bot.
public enum WireInput: Equatable, Sendable {
    /// The connection is made, and messages can be sent. Comes once; what comes after the first is ignored.
    case connected(WireCall)
    /// The caller's sound, in the wire's ``VoiceWire/callerFormat``: whole samples, in order, usually 20 ms of them.
    case sound([UInt8])
    /// The bot reads too slowly, so this number of the caller's samples was dropped. Time stamps skip them.
    case missed(samples: Int)
    /// The caller has pressed a telephone key: `0` to `9`, `*`, `#`, or `A` to `D`. Others are ignored.
    case digit(Character, heldMilliseconds: Int)
    /// All that the bot sent before the mark has been played.
    case markPlayed(String)
    /// The sound before the mark was discarded, as ``WireOutput/clear`` asked.
    case markDiscarded(String)
    /// Samples of the bot that were played when the queue was cleared, at the rate of ``VoiceWire/callerFormat`` and since the
    /// connection was made. Comes before each ``cleared``.
    case played(samples: Int)
    /// The queue is empty, as ``WireOutput/clear`` asked, or because the caller has interrupted the bot here. Comes after the marks that
    /// were discarded with it.
    case cleared
    /// A message of the bot.
    case message(WireMessage)
    /// The stream ends.
    case ended(WireEnd)
}

/// Why a stream ends.
public enum WireEnd: Hashable, Sendable {
    /// The call ended.
    case callOver
    /// The call continues without the bot.
    case detached
}

/// A message, in either direction.
public enum WireMessage: Hashable, Sendable {
    /// A text message of a WebSocket.
    case text([UInt8])
    /// A binary message of a WebSocket, or bytes of a TCP stream.
    case binary([UInt8])

    /// Its contents.
    public var bytes: [UInt8] {
        switch self {
        case .text(let bytes), .binary(let bytes): bytes
        }
    }
}

/// An action that a wire asks for.
public enum WireOutput: Equatable, Sendable {
    /// Send this to the bot.
    case send(WireMessage)
    /// Append sound to play to the caller: whole samples in the format given, at least one. Most wires always name the
    /// same format.
    case play([UInt8], WireFormat)
    /// Report by ``WireInput/markPlayed(_:)`` or ``WireInput/markDiscarded(_:)`` when all sound before it is played or
    /// discarded.
    case setMark(String)
    /// Discard what is not played yet, and then give ``WireInput/cleared``.
    case clear
    /// Press telephone keys: 1 to ``WireLimits/keys`` of `0` to `9`, `*`, `#` and `A` to `D`.
    case press(String)
    /// End the call: with `drains` once all is played, else now. The wire has ended.
    case hangUp(drains: Bool)
    /// The bot sent a message that the wire cannot follow. The wire has counted it, and the driver reports it; the call
    /// continues.
    case fault(WireFault)
    /// The bot sent something after which the wire cannot continue. Close the connection. The wire has ended.
    case failed(WireFault)
    /// Close the connection, once all messages are sent. The wire has ended.
    case close
}
