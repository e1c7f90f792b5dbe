import SignalWire
import Core

/// One login: what its bearer may do, and the tokens that show it.
struct Login: Hashable, Sendable {
    /// How far ``usedOnDisk`` may be behind, so that a busy device costs the disk little.
    static let usePrecision = Duration.seconds(3_600)

    var grant: Grant
    /// The API key that signed its tokens; `nil` if the exchange made them.
    var issuer: String?
    /// The user's ``Account/loginsSince`` when it began.
    var epoch: Int64?
    /// Oldest first.
    var tokens: [SecretDigest] = []
    /// The digest of what all its refresh tokens begin with; `nil` without one, or if they are from before families.
    var family: SecretDigest?
    /// The generation of its newest pair of tokens.
    var newest: UInt64 = 0
    /// The newest generation of which its bearer has shown a token.
    var reached: UInt64 = 0
    /// When it began, one of its tokens was last shown, or a session of it was last there; `nil` if an earlier version kept
    /// it that did not note when a login began.
    private(set) var used: Instant?
    /// ``used`` as stored on disk.
    private(set) var usedOnDisk: Instant?
    /// ``usedOnDisk`` is when it began: the first use after that is kept, too.
    private var isUnused = false
    /// The login has ended; it is remembered so that its tokens are refused with `tokenRevoked`.
    var isEnded = false

    init(_ grant: Grant, issuer: String?, epoch: Int64?) {
        self.grant = grant
        self.issuer = issuer
        self.epoch = epoch
    }

    /// One that was kept on disk.
    init(_ stored: StoredLogin?, _ grant: Grant, epoch: Int64?, isEnded: Bool, at now: Instant) {
        self.init(grant, issuer: stored?.issuer, epoch: epoch)
        family = stored?.family.flatMap { SecretDigest(hex: $0) }
        newest = stored?.newest ?? 0
        reached = stored?.reached ?? 0
        used = stored?.used.map { min($0, now) }
        usedOnDisk = used
        self.isEnded = isEnded
    }

    /// Notes that it begins.
    mutating func begin(at now: Instant) {
        used = now
        usedOnDisk = now
        isUnused = true
    }

    /// Notes that it is in use.
    mutating func use(at now: Instant) {
        used = now
        let isOld = usedOnDisk.map { $0.advanced(by: Self.usePrecision) <= now } ?? true
        if isUnused || isOld { usedOnDisk = now }
        isUnused = false
    }

    /// Whether another state of it is the same on disk.
    func isOnDisk(as other: Login) -> Bool {
        newest == other.newest && reached == other.reached && usedOnDisk == other.usedOnDisk && family == other.family
            && issuer == other.issuer
    }

    /// The record to store on disk.
    func stored(_ id: TokenStore.LoginID) -> StoredLogin {
        StoredLogin(
            id: id.hex, issuer: issuer, family: family?.hex, newest: newest, reached: reached, used: usedOnDisk)
    }
}
