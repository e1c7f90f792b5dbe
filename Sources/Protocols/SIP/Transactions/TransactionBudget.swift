internal import Core

/// The memory that transactions of peers may take up, and who has how much of it.
///
/// The server may use all of it. Other peers together may use three quarters, and those without a call half. One
/// address may use at most an eighth of what is free for its kind, so that a few addresses cannot use it up, however
/// many requests they send. An IPv6 address counts as its /64.
struct TransactionBudget: Sendable {
    /// The sender of a request.
    enum Peer: Hashable, Sendable {
        case server
        /// The peer of a call.
        case caller(ClientAddress)
        case stranger(ClientAddress)

        var address: ClientAddress? {
            switch self {
            case .server: nil
            case .caller(let address), .stranger(let address): address
            }
        }
    }

    let limit: Int
    private(set) var used = 0
    private var usedByOthers = 0
    private var usedByStrangers = 0
    private var usedByAddress: [ClientAddress: Int] = [:]

    init(limit: Int) { self.limit = limit }

    /// Whether a peer may use `bytes` more.
    func allows(_ bytes: Int, for peer: Peer) -> Bool {
        guard used + bytes <= limit else { return false }
        guard let address = peer.address else { return true }
        let own = usedByAddress[address] ?? 0
        var free = limit / 4 * 3 - usedByOthers
        if case .stranger = peer { free = min(free, limit / 2 - usedByStrangers) }
        return own + bytes <= (free + own) / 8
    }

    /// Adds to the bytes that a peer uses; a negative number subtracts.
    mutating func use(_ bytes: Int, by peer: Peer) {
        used += bytes
        guard let address = peer.address else { return }
        usedByOthers += bytes
        if case .stranger = peer { usedByStrangers += bytes }
        let own = (usedByAddress[address] ?? 0) + bytes
        usedByAddress[address] = own > 0 ? own : nil
    }
}

/// Memory of messages: their text, and the overhead of each of their parts. Estimates are on the high side.
enum MessageFootprint {
    /// A heap block of a string that is too long to be stored inline.
    private static let block = 48
    /// A header line, in an array that may have grown to twice of what it needs.
    private static let line = 2 * MemoryLayout<SIPHeaders.Header>.stride
    private static let parameter = 2 * MemoryLayout<SIPParameters.Parameter>.stride + 2 * block

    static func of(_ text: String) -> Int {
        let count = text.utf8.count
        return count > 15 ? count + block : 0
    }

    static func of(_ headers: SIPHeaders) -> Int {
        headers.all.reduce(block) { $0 + line + of($1.name.text) + of($1.name.key) + of($1.value) }
    }

    static func of(_ uri: AnyURI) -> Int {
        guard case .sip(let uri) = uri else { return uri.description.utf8.count + 4 * block }
        return uri.description.utf8.count + 4 * block + (uri.parameters.all.count + uri.headers.all.count) * parameter
    }
}

extension SIPRequest {
    /// Bytes that it takes up.
    var footprint: Int { MessageFootprint.of(uri) + MessageFootprint.of(headers) + body.count }
}

extension SIPResponse {
    /// Bytes that it takes up.
    var footprint: Int { MessageFootprint.of(reason) + MessageFootprint.of(headers) + body.count }
}
