/// Two descriptions do not come together.
public struct NegotiationError: Error, Equatable, Sendable, CustomStringConvertible {
    /// Why there is no call.
    public struct Code: Equatable, Sendable {
        private let number: UInt8
        /// The peer's description has no audio.
        public static let noAudio = Code(number: 0)
        /// The peer has none of our codecs.
        public static let noCommonCodec = Code(number: 1)
        /// There is no key of the peer's, or none that can be used.
        public static let noAcceptableCrypto = Code(number: 2)
        /// The peer asks for unprotected media, which is not allowed here.
        public static let plainMediaRefused = Code(number: 3)
        /// The peer's transport is one that we do not have.
        public static let unsupportedProfile = Code(number: 4)
        /// The peer's address is no address that packets can be sent to.
        public static let unusableAddress = Code(number: 5)
        /// The peer's answer refuses the audio that we offered.
        public static let refused = Code(number: 6)
        /// The peer's answer does not fit our offer.
        public static let answerDoesNotFit = Code(number: 7)
        /// An answer came and nothing was offered.
        public static let nothingOffered = Code(number: 8)
        /// The peer asks for DTLS without a fingerprint that could be checked.
        public static let noFingerprint = Code(number: 9)
        /// The peer's ICE attributes are incomplete.
        public static let malformedICE = Code(number: 10)
        /// The peer needs a second port for RTCP, which we do not have with ICE.
        public static let multiplexingNeeded = Code(number: 11)
        /// The peer restarts ICE, and the answer would repeat our old credentials.
        public static let staleICECredentials = Code(number: 12)
        /// Offers have crossed, or a call comes in the wrong order: roll back first, or answer.
        public static let wrongState = Code(number: 13)
        /// The peer's offer has more sections than fit in an answer.
        public static let tooManySections = Code(number: 14)
    }

    /// Why.
    public let code: Code
    /// What was found, and what would help, as whole sentences.
    public let message: String

    /// ``message``, introduced.
    public var description: String { "cannot agree on media: \(message)" }

    init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }
}
