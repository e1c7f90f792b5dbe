// SignalWire: every message of the signaling wire as a value, and its coding to and from bytes, which is done here
// alone.

internal import FoundationEssentials
internal import JSON

/// The limits of the wire; the exchange refuses more.
public enum SignalLimits {
    /// Bytes in one WebSocket message, and in one REST body.
    public static let messageBytes = 65_536
    /// Objects and arrays within each other.
    public static let nesting = 64
    /// Bytes in one message of the exchange, which a client must accept. The other limits admit nothing that would need
    /// a longer message; docs/protocol.md has the arithmetic.
    public static let deliveredBytes = 262_144
    /// Bytes in the `data`, `payload` and `timeout_payload` of an invite together, and in the `data` of the messages
    /// that follow it, as JSON text that the exchange writes: `1e18` comes in as 4 bytes and goes out as 19.
    public static let inviteDataBytes = 61_440
    /// The same for a stream (WHIP and WHEP): the offer is a REST body, and JSON writes a line's end as four bytes.
    public static let streamInviteDataBytes = 3 * messageBytes
    /// Bytes of the entries in one page of a list; a longer entry fills a page alone.
    public static let pageBytes = messageBytes - 256
    /// Ids by which one user can be called, besides the user's own.
    public static let publicIDs = 64
    /// Bytes in the type of a `call.signal` or `room.signal` (SIG-1).
    public static let signalTypeBytes = 128
    /// Bytes in the data of a `call.signal` or `room.signal`, as JSON text (SIG-1).
    public static let signalDataBytes = 8_192
    /// The same for a stream's signals (WHIP and WHEP), which the exchange itself sends: an offer that restarts ICE is
    /// as long as the one in the invite. The rest of a message is for the members around it.
    public static let streamSignalDataBytes = messageBytes - 2_048
    /// Bytes in the cause of a call's failure.
    public static let causeBytes = 64
    /// Bytes in an ``Identifier``, and in what people call a device or a group.
    public static let nameBytes = IdentifierLimits.bytes
    /// Capabilities that a device may list.
    public static let capabilities = 32
    /// Users that one invite may ask.
    public static let invitees = 32
    /// Members of one group, its owner included.
    public static let groupMembers = 200
    /// Groups that one user may own.
    public static let groupsOwned = 64
    /// Groups that one user may be in.
    public static let groupsJoined = 256
    /// Bytes in the connection data of a participant of a room.
    public static let connectionDataBytes = 1_000
    /// Push tokens of one device.
    public static let pushTargets = 8
    /// Bytes in a push token.
    public static let pushTokenBytes = 4_096
    /// Bytes of invites that a device receives when it registers; it gets the rest by `invite.list`.
    public static let syncBytes = 524_288
    /// Users that the answer to `presence.subscribe` lists.
    public static let presenceUsers = 200
    /// Seconds that an invite with a ttl may live: a day.
    public static let ttlSeconds = 86_400.0
}

/// How long text may be that is read, and how deeply nested.
public struct SignalBounds: Hashable, Sendable {
    /// Bytes in one message.
    public var messageBytes: Int
    /// Objects and arrays within each other.
    public var nesting: Int

    /// Bounds of messages that the exchange accepts.
    public static let request = SignalBounds(messageBytes: SignalLimits.messageBytes, nesting: SignalLimits.nesting)
    /// Bounds of messages that the exchange may send, which a client must accept: a request's contents, with more
    /// around them.
    public static let delivery = SignalBounds(
        messageBytes: SignalLimits.deliveredBytes, nesting: SignalLimits.nesting + 8)
    /// Enough to find out whose a message is that is nested too deeply to be taken. The parser recurses 512 levels.
    static let envelope = SignalBounds(messageBytes: SignalLimits.messageBytes, nesting: 256)
}

/// Bytes to messages and back.
public enum SignalCoding {
    private static let encoder = {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return encoder
    }()
    private static let decoder = JSONDecoder()

    /// Writes a message as JSON text with sorted keys.
    ///
    /// - Throws: ``SignalCodingError`` with ``SignalCodingError/Code/notRepresentable`` for a number that JSON does
    ///   not have (not a number, infinity); for nothing else.
    public static func encode(_ value: some Encodable) throws(SignalCodingError) -> [UInt8] {
        if let text = try? JSONText(value) { return text.bytes }
        do {
            return [UInt8](try encoder.encode(value))
        } catch {
            throw SignalCodingError(.notRepresentable, "the message holds a number that JSON does not have")
        }
    }

    /// Reads a message from JSON text. Any bytes may be given; nothing in them can trap.
    ///
    /// Size and nesting are looked at before the text is parsed, since JSON parsers recurse.
    ///
    /// - Complexity: O(bytes).
    public static func decode<Message: Decodable>(
        _ type: Message.Type, from bytes: [UInt8], within bounds: SignalBounds = .request
    ) throws(SignalCodingError) -> Message {
        if let message = try? plain(bytes, within: bounds)?.decoded(as: type) { return message }
        // The slower reader reports what is wrong, if anything is.
        try check(bytes, bounds)
        do {
            return try decoder.decode(type, from: Data(bytes))
        } catch let error as DecodingError {
            throw SignalCodingError(error)
        } catch {
            throw SignalCodingError(.notJSON, "the text is not JSON")
        }
    }

    /// Reads text that is within bounds and plain; nil for any other.
    static func plain(_ bytes: [UInt8], within bounds: SignalBounds) -> JSONValue? {
        bytes.count <= bounds.messageBytes ? JSONValue(plain: bytes, nesting: bounds.nesting) : nil
    }

    /// Refuses text that is too long or nested too deeply to be parsed.
    private static func check(_ bytes: [UInt8], _ bounds: SignalBounds) throws(SignalCodingError) {
        guard bytes.count <= bounds.messageBytes else {
            throw SignalCodingError(
                .tooLarge, "the message has \(bytes.count) bytes; \(bounds.messageBytes) are allowed")
        }
        guard JSONValue.nesting(of: bytes) <= bounds.nesting else {
            throw SignalCodingError(
                .tooDeep, "the message is nested more than \(bounds.nesting) levels deep")
        }
    }
}

/// Limits on open invites, so that one user's invites do not keep out those of others.
extension SignalLimits {
    /// Open invites from one user, to one user, and in one group.
    public static let openInvites = 256
    /// Unanswered open invites from one user to one other, and open invites of one member in a group.
    public static let openInvitesOfPair = 8
    /// Unanswered open invites to one user, from all users together with which it is not acquainted.
    public static let openInvitesOfStrangers = 64
    /// Open invites in a group beyond the first of each member, of all members but the owner together.
    public static let openInvitesBeyondFirst = 48
    /// Groups that a user is in and whose owners it is not acquainted with, past which no such owner adds it to another.
    public static let groupsOfStrangers = 64
    /// Transfers in a row, each of a call that the one before has made.
    public static let transfersInARow = 5
    /// Acquaintances that are remembered for one user.
    public static let acquaintances = 512
}

/// How long what comes from clients may be that have not logged in: the exchange reads no further.
extension SignalLimits {
    /// Bytes in the body of a REST request without a good `Bearer` token.
    public static let loginBytes = 8_192
    /// Bytes in a WebSocket message before `session.start` has been answered: a signed token of 8 KiB, a push token of
    /// 4 KiB and a device with all its capabilities fit.
    public static let sessionStartBytes = 24_576
}

/// JSON objects some of whose members are text already: what is kept as text is not read to be written again.
///
/// Reading and writing JSON costs many times what copying it does, and a list of small numbers many times as much again.
enum SplicedText {
    /// Puts members first into the object that begins at the end of `start`.
    ///
    /// - Parameters:
    ///   - object: JSON text that begins with `start`, whose last character opens an object with at least one member.
    ///   - members: Names that need no escapes, with JSON text; those without text are left out.
    static func text(_ object: [UInt8], after start: String = "{", _ members: KeyValuePairs<String, String?>) -> String
    {
        precondition(object.starts(with: start.utf8), "the object begins elsewhere")
        var text = start
        text.reserveCapacity(object.count + members.reduce(0) { $0 + ($1.value?.utf8.count ?? 0) + 16 })
        for (name, value) in members {
            if let value { text += #""\#(name)":\#(value),"# }
        }
        text += String(decoding: object.dropFirst(start.utf8.count), as: UTF8.self)
        return text
    }
}
