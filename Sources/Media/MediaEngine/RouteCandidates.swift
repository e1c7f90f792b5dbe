/// How likely a datagram is a call's, the likeliest first.
enum RouteLikelihood: Int, BitwiseCopyable {
    /// It comes from the call's address with the SSRC that the call knows.
    case addressAndSSRC
    /// It comes from the call's address, and nothing of the peer has come before.
    case addressOfFresh
    /// Like ``freshElsewhere``, for every second datagram: otherwise such a call would never be tried if many have the
    /// SSRC.
    case freshBeforeOthers
    /// It has the call's SSRC and comes from another address: the peer's may have changed.
    case ssrcElsewhere
    /// It comes from the call's address with another SSRC: the peer's may have changed.
    case addressAlone
    /// Neither is known, and nothing of the peer has come before: it may be behind a translator of addresses.
    case freshElsewhere
    /// It is not the call's.
    case none
}

/// The calls that a datagram may belong to, the likeliest first. Four at most, so that a flood of foreign packets
/// costs little.
struct RouteCandidates: BitwiseCopyable {
    private(set) var count = 0
    private var positions = (0, 0, 0, 0)
    private var ranks = (0, 0, 0, 0)

    @_noAllocation @_noLocks
    init() {}

    /// One call that is known otherwise.
    @_noAllocation @_noLocks
    init(only position: Int) { insert(position, .addressAndSSRC) }

    /// The position of the candidate call at `index`, below ``count``.
    subscript(index: Int) -> Int {
        @_noAllocation @_noLocks get {
            switch index {
            case 0: positions.0
            case 1: positions.1
            case 2: positions.2
            default: positions.3
            }
        }
    }

    /// Whether neither address nor SSRC speak for the first.
    var isGuess: Bool {
        @_noAllocation @_noLocks get {
            ranks.0 == RouteLikelihood.freshBeforeOthers.rawValue || ranks.0 == RouteLikelihood.freshElsewhere.rawValue
        }
    }

    /// Puts a call behind those that are as likely; the last of five is left out.
    @_noAllocation @_noLocks
    mutating func insert(_ position: Int, _ likelihood: RouteLikelihood) {
        let rank = likelihood.rawValue
        if count < 1 || rank < ranks.0 {
            positions = (position, positions.0, positions.1, positions.2)
            ranks = (rank, ranks.0, ranks.1, ranks.2)
        } else if count < 2 || rank < ranks.1 {
            positions = (positions.0, position, positions.1, positions.2)
            ranks = (ranks.0, rank, ranks.1, ranks.2)
        } else if count < 3 || rank < ranks.2 {
            positions = (positions.0, positions.1, position, positions.2)
            ranks = (ranks.0, ranks.1, rank, ranks.2)
        } else if count < 4 || rank < ranks.3 {
            positions.3 = position
            ranks.3 = rank
        } else {
            return
        }
        count = min(count + 1, 4)
    }

    /// Keeps only those at the address if one of them knows the SSRC too, so that a running call's packets are tried
    /// only with that call.
    @_noAllocation @_noLocks
    mutating func dropUnlikely() {
        guard count > 1, ranks.0 == RouteLikelihood.addressAndSSRC.rawValue else { return }
        let last = RouteLikelihood.addressOfFresh.rawValue
        if ranks.1 > last {
            count = 1
        } else if count > 2, ranks.2 > last {
            count = 2
        } else if count > 3, ranks.3 > last {
            count = 3
        }
    }
}
