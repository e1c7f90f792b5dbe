internal import CallControl
internal import SIP
internal import Core

/// One call of an account.
struct AccountCall: Sendable {
    enum Phase: Sendable {
        /// Outgoing; it waits for candidates of the description, or for a connection that carries large requests.
        case preparing(Gathering?)
        /// Outgoing; the INVITE is out. By `takenAt` at the latest the application learns that the INVITE is on its
        /// way.
        case calling(takenAt: Instant)
        /// Incoming; at `ringAt` the caller gets a ringing response.
        case ringing(ringAt: Instant?)
        /// Incoming and accepted; the answer waits for candidates, and the application for that.
        case accepting(Gathering, ticket: UInt64)
        case talking(since: Instant)
    }

    /// A description that waits for the end of its candidates: SIP cannot send them separately.
    struct Gathering: Sendable {
        var candidates: [String] = []
        let until: Instant
    }

    /// The peer's offer in an established call.
    enum PeerOffer: Sendable {
        case none
        /// The answer is due at `until`. The next `lateAnswers` answers are to earlier offers, and are ignored.
        case waits(until: Instant, [UInt8], lateAnswers: Int)
        /// The peer took the offer back, or it was refused because the application did not answer. Answers of the
        /// application until `until` are ignored, and it receives the valid description again.
        case dropped(until: Instant, lateAnswers: Int)
        /// The peer asked us for an offer, which the application has to make before `until`.
        case wantsOurs(until: Instant)
        /// The peer has the offer that it asked us for, and its answer is still due.
        case askedForOurs
        /// The peer's answer to our offer went to the application as an offer; the application's answer to that is not
        /// sent.
        case settled
    }

    /// A transfer that the peer has asked us for.
    enum Referral: Sendable {
        /// The application has not decided on it.
        case asked
        /// The application is about to place the call to the target.
        case admitted
    }

    let invite: InviteID
    let sip: SIPCall
    let peer: UserID
    var phase: Phase
    /// The valid descriptions, ours and the peer's. An offer becomes valid when it is answered.
    var ours: [UInt8]
    var theirs: [UInt8]?
    /// Whether the peer has confirmed our answer, or the call is outgoing.
    var isAcknowledged = true
    /// Number of early answers so far.
    var earlyAnswers = 0
    /// Our offer that is not answered yet.
    var ourOffer: [UInt8]?
    var peerOffer = PeerOffer.none
    /// Set while our address has changed and the peer has not answered an offer with the new one.
    var pendingAddress: PendingAddress?
    /// What the peer has asked us for, until the call to the target is placed, or is refused.
    var referral: Referral?
    /// When a transfer that we asked the peer for counts as failed, unless the peer reports on it before.
    var transferUntil: Instant?
    /// The request that waits for the result of a probe.
    var probe: UInt64?
    /// Our invite.
    var dial: Dial?

    /// A change of our address that the peer does not know yet.
    struct PendingAddress: Sendable {
        /// Our earlier addresses, which a description may still contain.
        private var former: [SIPHost] = []
        /// Whether the offer with the new address is sent and not answered.
        var isOut = false
        /// When the offer is made again, if no registration comes before.
        var retryAt: Instant?
        private var attempts = 0

        private static let mostFormer = 8
        private static let mostAttempts = 6

        mutating func add(_ hosts: [SIPHost]) {
            // An offer that was sent has the earlier address.
            if !hosts.isEmpty { isOut = false }
            for host in hosts where !former.contains(host) { former.append(host) }
            if former.count > Self.mostFormer { former.removeFirst(former.count - Self.mostFormer) }
        }

        /// The description with the new address; nil if it has no former one.
        func readdressed(_ description: [UInt8], to new: SIPHost) -> [UInt8]? {
            former.lazy.compactMap { DescriptionText.readdressed(description, from: $0, to: new) }.first
        }

        /// The offer failed: it is made again after 4 s, then after twice as long each time, up to `mostAttempts`
        /// times.
        mutating func refused(at now: Instant) {
            isOut = false
            guard attempts < Self.mostAttempts else { return }
            retryAt = now.advanced(by: .seconds(4 << attempts))
            attempts += 1
        }
    }

    struct Dial: Sendable {
        let uri: AnyURI
        let key: IdempotencyKey
        /// The request that is answered once the invite is on its way.
        var ticket: UInt64?
        /// When the invite times out.
        let expires: Instant?
        /// The call whose peer asked for this one.
        var origin: SIPCall?
        /// What the INVITE has besides its own headers.
        var headers = SIPHeaders()
    }

    /// When something is due.
    var deadline: Instant? {
        let own: Instant? =
            switch phase {
            case .preparing(let gathering): gathering?.until
            case .calling(let takenAt): dial?.ticket == nil ? nil : takenAt
            case .ringing(let ringAt): ringAt
            case .accepting(let gathering, _): gathering.until
            case .talking: nil
            }
        var all = [own].compactMap { $0 }
        switch peerOffer {
        case .waits(let until, _, _), .wantsOurs(let until): all.append(until)
        case .none, .dropped, .askedForOurs, .settled: break
        }
        if let transferUntil { all.append(transferUntil) }
        if let retryAt = pendingAddress?.retryAt { all.append(retryAt) }
        switch phase {
        case .preparing, .calling: if let expires = dial?.expires { all.append(expires) }
        case .ringing, .accepting, .talking: break
        }
        return all.min()
    }
}

/// Session descriptions as bytes and as text, as far as SIP's calls read them.
enum DescriptionText {
    /// Whether candidates may still come for it.
    static func awaitsCandidates(_ text: String) -> Bool {
        text.contains("a=ice-ufrag:") && !text.contains("a=end-of-candidates")
    }

    /// Adds candidates, each the text of an attribute, to the last section; a call of one section has only that one.
    static func adding(_ candidates: [String], to text: String) -> String {
        let known = Set(text.split(whereSeparator: \.isNewline).map(String.init))
        let lines = candidates.map { "a=\($0)" }.filter { !known.contains($0) && !$0.contains(where: \.isNewline) }
        return text + lines.map { $0 + "\r\n" }.joined() + "a=end-of-candidates\r\n"
    }

    /// The same description with our new address, of the same family, and the next version (RFC 3264 §8); nil if the
    /// description does not receive at the old one. With ICE, which finds its own path, it stays.
    static func readdressed(_ bytes: [UInt8], from old: SIPHost, to new: SIPHost) -> [UInt8]? {
        let text = String(decoding: bytes, as: UTF8.self)
        let (before, after) = (words(old), words(new))
        guard old != new, before.prefix(8) == after.prefix(8), !text.contains("a=ice-ufrag:") else { return nil }
        var isChanged = false
        let lines = text.split(separator: "\r\n", omittingEmptySubsequences: false).map { line -> String in
            if line == "c=" + before {
                isChanged = true
                return "c=" + after
            }
            guard line.hasPrefix("o=") else { return String(line) }
            var fields = line.split(separator: " ").map(String.init)
            guard fields.count == 6, let version = UInt64(fields[2]), version < .max else { return String(line) }
            fields[2] = String(version + 1)
            return fields.joined(separator: " ")
        }
        return isChanged ? Array(lines.joined(separator: "\r\n").utf8) : nil
    }

    /// An offer of the application's as the next description after one that holds, which has another address, candidates or a
    /// higher version if the account has changed it.
    static func continuing(_ bytes: [UInt8], after ours: [UInt8]) -> [UInt8] {
        func lines(_ bytes: [UInt8]) -> [String] {
            String(decoding: bytes, as: UTF8.self).split(separator: "\r\n", omittingEmptySubsequences: false).map(
                String.init)
        }
        let (before, offered) = (lines(ours), lines(bytes))
        let fragment = offered.first { $0.hasPrefix("a=ice-ufrag:") }
        let address = fragment == nil ? before.first { $0.hasPrefix("c=") } : nil
        let version = before.first { $0.hasPrefix("o=") }.flatMap(version) ?? 0
        var next = offered.map { line -> String in
            if let address, line.hasPrefix("c=") { return address }
            guard line.hasPrefix("o="), let own = Self.version(line), own <= version, version < .max else {
                return line
            }
            var fields = line.split(separator: " ").map(String.init)
            fields[2] = String(version + 1)
            return fields.joined(separator: " ")
        }
        if let fragment, before.contains(fragment), !offered.contains("a=end-of-candidates") {
            let known = before.filter {
                ($0.hasPrefix("a=candidate:") || $0 == "a=end-of-candidates") && !offered.contains($0)
            }
            next.insert(contentsOf: known, at: next.last == "" ? next.endIndex - 1 : next.endIndex)
        }
        return Array(next.joined(separator: "\r\n").utf8)
    }

    /// The version in a line that names the session.
    private static func version(_ origin: String) -> UInt64? {
        let fields = origin.split(separator: " ")
        return fields.count == 6 ? UInt64(fields[2]) : nil
    }

    /// Whether a later description without ICE has other addresses or directions of media than an earlier one. A higher
    /// version alone does not count, nor does the DTLS role, which offers leave open.
    static func isMoved(from old: [UInt8], to new: [UInt8]) -> Bool {
        func lines(_ bytes: [UInt8]) -> [Substring] {
            String(decoding: DescriptionRole.asOffer(bytes), as: UTF8.self).split(whereSeparator: \.isNewline)
                .filter { !$0.hasPrefix("o=") }
        }
        let (before, after) = (lines(old), lines(new))
        return before != after && !after.contains { $0.hasPrefix("a=ice-ufrag:") }
    }

    /// An address in the form of a description.
    private static func words(_ host: SIPHost) -> String {
        let text = host.text
        return text.hasPrefix("[") ? "IN IP6 " + text.dropFirst().dropLast() : "IN IP4 " + text
    }
}
