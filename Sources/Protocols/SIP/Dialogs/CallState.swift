internal import Core

/// A response that is sent again until it is acknowledged: a 2xx, or a reliable provisional one.
struct RepeatedResponse: Sendable {
    let response: SIPResponse
    private var interval: Duration
    private let longest: Duration
    private(set) var next: Instant
    let limit: Instant

    init(_ response: SIPResponse, timers: TransactionTimers, longest: Duration, at now: Instant) {
        self.response = response
        self.longest = longest
        interval = timers.t1
        next = now.advanced(by: timers.t1)
        limit = now.advanced(by: timers.timeout)
    }

    var deadline: Instant { min(next, limit) }

    mutating func sent(at now: Instant) {
        interval = min(interval * 2, longest)
        next = now.advanced(by: interval)
    }
}

/// One call of a user agent. Each stage holds what is valid in it.
struct Call: Sendable {
    enum Stage: Sendable {
        /// Our INVITE has no final answer.
        case calling(Calling)
        /// A peer's INVITE has none.
        case ringing(Ringing)
        /// There is a confirmed dialog.
        case talking(Talking)
        /// Our BYE has no answer; the owner has received the call's end (RFC 5407 §2, Mortal).
        case mortal(Mortal)
    }

    /// A dialog that we leave.
    struct Mortal: Sendable {
        var dialog: Dialog
        /// A BYE that got no answer because its flow is gone. It is sent again on the next flow, if there is one before
        /// `until`.
        var lost: Lost?

        struct Lost: Sendable {
            let bye: SIPRequest
            let until: Instant
        }

        /// How long a BYE waits for another flow.
        static let patience = Duration.seconds(120)
    }

    /// Our INVITE, and the early dialogs that it forked into.
    struct Calling: Sendable {
        struct Fork: Sendable {
            var dialog: Dialog
            /// The last reliable response in order.
            var lastReliable: UInt32?
            /// The answer in a reliable response before the call was accepted; no later one counts (RFC 3262 §5).
            var answer: [UInt8]?
            /// The description in an unreliable response: it is the answer, if the acceptance has none.
            var preview: [UInt8]?

            /// Takes a description that came early.
            ///
            /// - Returns: The description, if it would be the answer of an acceptance that has none.
            mutating func take(_ description: [UInt8]?, isReliable: Bool) -> [UInt8]? {
                guard let description else { return nil }
                if isReliable { answer = answer ?? description }
                if let answer { return answer == description ? description : nil }
                preview = description
                return description
            }
        }

        let request: SIPRequest
        let transaction: UInt64
        let offer: [UInt8]
        let flow: SIPFlow
        let ringLimit: Instant
        /// Targets of redirections, those tried and those left.
        var targets: RedirectionTargets
        var forks: [String: Fork] = [:]
        var hasProvisional = false
        /// The owner has ended the call, and with what cause.
        var end: Ending?

        struct Ending: Sendable {
            let cause: Int?
            var isSent = false
        }
    }

    /// A peer's INVITE.
    struct Ringing: Sendable {
        enum Step: Sendable {
            case ring([UInt8]?)
            case accept([UInt8])
        }

        let request: SIPRequest
        let transaction: TransactionID
        var dialog: Dialog
        let replacing: SIPCall?
        let ringLimit: Instant
        var nextReliable: UInt32
        /// A reliable response that waits for its PRACK; steps queue until then.
        var unacknowledged: RepeatedResponse?
        var steps: [Step] = []
        /// The answer that was sent in a provisional response. A 2xx repeats it unless the response was reliable.
        var earlyAnswer: [UInt8]?
        var isAnsweredReliably = false
    }

    /// A confirmed dialog.
    struct Talking: Sendable {
        /// The state of an offer or of another INVITE: none, ours, or the peer's.
        enum Negotiation: Sendable {
            case stable
            /// Our INVITE or UPDATE is in progress. The owner gets no event for a refresh of the session.
            case sent(transaction: UInt64, description: [UInt8]?, isRefresh: Bool)
            /// The peer's is to be answered by the owner.
            case received(SIPRequest, TransactionID)
        }

        /// An offer that crossed the peer's, to be made again (RFC 3261 §14.1), or that waits for an exchange in
        /// progress.
        struct PostponedOffer: Sendable {
            /// How often it is looked at while it waits.
            static let step = Duration.milliseconds(100)

            var until: Instant
            let description: [UInt8]
            let isRefresh: Bool
        }

        /// A reliable response that had no PRACK when the call was accepted; its PRACK may still come.
        var unacknowledgedRing: SIPResponse?

        /// Digits are sent one after the other, because a later INFO that overtakes an earlier one would make the peer
        /// refuse the earlier one (RFC 3261 §12.2.2). As many wait as the media side takes at once; further ones are
        /// dropped.
        struct Digits: Sendable {
            private static let mostWaiting = 32
            private var waiting: [InfoDigit] = []
            private var isSending = false

            /// Takes a digit.
            ///
            /// - Returns: Whether it is sent now.
            mutating func press(_ digit: InfoDigit) -> Bool {
                guard isSending else {
                    isSending = true
                    return true
                }
                if waiting.count < Self.mostWaiting { waiting.append(digit) }
                return false
            }

            /// The one that was sent has its answer: the next one.
            mutating func next() -> InfoDigit? {
                isSending = !waiting.isEmpty
                return waiting.isEmpty ? nil : waiting.removeFirst()
            }
        }

        /// Our 2xx that has no ACK.
        struct Unacknowledged: Sendable {
            var response: RepeatedResponse
            let transaction: TransactionID
            let sequence: UInt32
            /// Whether our description in it was the offer, so that the ACK has the answer.
            let isOffer: Bool
        }

        var dialog: Dialog
        /// We sent the first INVITE and so own the Call-ID.
        let isCaller: Bool
        /// Our present description.
        var description: [UInt8]
        var negotiation = Negotiation.stable
        var postponed: PostponedOffer?
        var unacknowledged: Unacknowledged?
        /// The host that the ACK of our 2xx came from, or another request that proves that the peer has the 2xx.
        var acknowledgedFrom: SIPHost?
        var timer: SessionTimer?
        /// The owner ended the call, and the BYE waits for the ACK (RFC 3261 §15).
        var endsWithCause: Int??
        /// Our digits, which are sent by INFO.
        var digits = Digits()
        /// A REFER that the owner has not decided on.
        var referral: (request: SIPRequest, transaction: TransactionID)?

        init(dialog: Dialog, isCaller: Bool, description: [UInt8]) {
            self.dialog = dialog
            self.isCaller = isCaller
            self.description = description
        }

        /// An offer that replaced a refresh has failed: the session is refreshed after all.
        mutating func refreshLater(least: UInt32? = nil, at now: Instant) {
            guard let timer, timer.isRefreshing, postponed == nil else { return }
            self.timer = timer.refused(least: least, at: now)
        }

        var deadline: Instant? {
            var deadlines: [Instant] = []
            if let unacknowledged { deadlines.append(unacknowledged.response.deadline) }
            if let timer { deadlines.append(timer.deadline) }
            if let postponed { deadlines.append(postponed.until) }
            return deadlines.min()
        }
    }

    var stage: Stage

    /// Its flow.
    var flow: SIPFlow {
        switch stage {
        case .calling(let calling): calling.flow
        case .ringing(let ringing): ringing.dialog.flow
        case .talking(let talking): talking.dialog.flow
        case .mortal(let mortal): mortal.dialog.flow
        }
    }

    /// Its dialog, or that of the fork whose peer has that tag.
    func dialog(with tag: String?) -> Dialog? {
        switch stage {
        case .calling(let calling): calling.forks[tag ?? ""]?.dialog
        case .ringing(let ringing): ringing.dialog
        case .talking(let talking): talking.dialog
        case .mortal(let mortal): mortal.dialog
        }
    }

    /// Addresses that its peers may have.
    var peerHosts: [SIPHost] {
        switch stage {
        case .calling(let calling): calling.forks.values.flatMap(\.dialog.peerHosts)
        case .ringing(let ringing): ringing.dialog.peerHosts
        case .talking(let talking): talking.dialog.peerHosts
        case .mortal(let mortal): mortal.dialog.peerHosts
        }
    }

    /// Its Call-ID.
    var callID: String? {
        switch stage {
        case .calling(let calling): calling.request.headers.callID
        case .ringing(let ringing): ringing.dialog.callID
        case .talking(let talking): talking.dialog.callID
        case .mortal(let mortal): mortal.dialog.callID
        }
    }

    /// When something is due.
    var deadline: Instant? {
        switch stage {
        case .calling(let calling): calling.end == nil ? calling.ringLimit : nil
        case .ringing(let ringing): min(ringing.unacknowledged?.deadline ?? ringing.ringLimit, ringing.ringLimit)
        case .talking(let talking): talking.deadline
        case .mortal(let mortal): mortal.lost?.until
        }
    }
}

/// The purpose of our request.
struct RequestUse: Sendable {
    enum Kind: Sendable {
        case invite
        case reinvite
        case update
        case bye
        case prack
        case info
        case refer
        case notify
        case probe
        case cancel
    }

    let kind: Kind
    let call: SIPCall
    let request: SIPRequest
    let flow: SIPFlow
    /// How often it was sent again, with credentials or other terms.
    var attempts = 0
    /// The ACKs of an INVITE's 2xx, by the tag of the fork.
    var acks: [String: SIPRequest] = [:]
}
