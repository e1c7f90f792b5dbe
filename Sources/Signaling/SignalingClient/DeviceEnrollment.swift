internal import Core
public import CallControl
internal import Cryptography
public import Enrollment
internal import FoundationEssentials
internal import HTTPTransport
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix
internal import SignalWire
internal import TLS

/// Enrols a device at an exchange by a code (contract AUTH-13).
///
/// The code's secret is sent only to an exchange whose certificate is signed by the authority of the code's
/// fingerprint. Enrolling again with the same code and key has the same outcome: a device that failed half way
/// continues.
public struct DeviceEnrollment: Sendable {
    /// What joining has given.
    public struct Outcome: Sendable {
        /// The user that the device logs in as.
        public let user: String
        /// The key, with what the exchange calls the enrolment.
        public let key: DeviceLoginKey
        /// What is to be trusted besides the system's certificates, in PEM form; nil if those are enough.
        public let trustRoots: [UInt8]?
    }

    private let code: EnrollmentCode
    private let application: HandsetServiceConfiguration.Application
    /// How often an exchange that does not know the code yet is asked again: it rereads its users every second.
    private static let (attempts, pause) = (4, Duration.seconds(1))

    /// - Parameter application: The program that joins.
    public init(_ code: EnrollmentCode, application: HandsetServiceConfiguration.Application) {
        self.code = code
        self.application = application
    }

    /// Finds the exchange, checks its authority, and joins with `key`.
    public func join(with key: DeviceLoginKey) async throws(SignalingError) -> Outcome {
        let activity = "join the exchange at \(code.server)"
        guard let publicKey = key.publicKey else {
            throw SignalingError(.badConfiguration, activity: activity, cause: "the key is not an Ed25519 key")
        }
        let endpoint = try HTTPEndpoint.of(code.server)
        // Without a fingerprint the receiver of the secret is unknown.
        try endpoint.check(.loopbackOnly, for: activity)
        let trust = try await trust(endpoint, activity)
        let addresses = HandsetServiceConfiguration.Addresses(code.server)
        let configuration = HandsetServiceConfiguration(
            addresses: addresses, application: application, credentials: .kept,
            device: .init(id: DeviceID(ours: "joining"), name: "joining"))
        let rest = RESTClient(
            configuration: configuration, trust: trust.trust, loop: MultiThreadedEventLoopGroup.singleton.next())
        let answer = try await ask(rest, key, publicKey, activity)
        guard let joined = DeviceLoginKey(pem: key.text, enrollment: answer.enrollment) else {
            throw SignalingError(.internalError, activity: activity, cause: "the key cannot be written")
        }
        return Outcome(user: answer.userID.text, key: joined, trustRoots: trust.roots)
    }

    private func ask(
        _ rest: RESTClient, _ key: DeviceLoginKey, _ publicKey: DeviceKeyText, _ activity: String
    ) async throws(SignalingError) -> EnrollmentResponse {
        let signature = key.sign(KeyProof.enrolling(code.secret, key: publicKey))
        let request = EnrollmentRequest(
            code: Redacted(code.secret.characters), publicKey: publicKey.text, signature: Redacted(signature))
        var attempt = 1
        while true {
            do throws(ServiceFailure) {
                return try await rest.enroll(request, doing: activity)
            } catch {
                guard [.enrollmentUnknown, .tooManyRequests].contains(error.error.code) else { throw error.error }
                guard attempt < Self.attempts else {
                    throw SignalingError(
                        .loginRefused, activity: activity, cause: error.error.cause, advice: error.error.advice,
                        traceID: error.error.traceID)
                }
            }
            attempt += 1
            try? await Task.sleep(for: Self.pause)
        }
    }

    // MARK: - The authority

    private func trust(
        _ endpoint: HTTPEndpoint, _ activity: String
    ) async throws(SignalingError) -> (trust: TLSTrust, roots: [UInt8]?) {
        guard let fingerprint = code.fingerprint else { return (.system, nil) }
        let chain: [TLSCertificate]
        do {
            chain = try await PresentedChain.fetch(from: endpoint)
        } catch {
            throw ServiceFailure.transport(error, to: endpoint, doing: activity).error
        }
        let authority = chain.first { certificate in
            AuthorityFingerprint(digest: Digest.sha256(certificate.der)) == fingerprint
        }
        guard let authority, let pem = authority.pem else {
            throw SignalingError(
                .certificateNotTrusted, activity: activity,
                cause:
                    "it is not the exchange that the code names: no certificate of \(endpoint.authority) "
                    + "has the code's fingerprint",
                advice:
                    "Check the address; if it is right, the connection is intercepted, or the exchange has a new authority: "
                    + "make a new code with `handset user enroll`.")
        }
        try Self.checkTime(of: chain, endpoint, activity)
        // One that has signed itself is all that is trusted now; of any other the system must know who has signed it.
        guard CertificateAuthority.isSelfIssued(pem) else { return (.system, nil) }
        return (TLSTrust(only: authority), pem)
    }

    /// Whether the certificate is valid by this machine's clock.
    private static func checkTime(
        of chain: [TLSCertificate], _ endpoint: HTTPEndpoint, _ activity: String
    ) throws(SignalingError) {
        guard let own = chain.first else { return }
        let now = Int(Date().timeIntervalSince1970)
        guard now < own.notBefore || now > own.notAfter else { return }
        func day(_ seconds: Int) -> String {
            String(Date(timeIntervalSince1970: Double(seconds)).ISO8601Format().prefix(10))
        }
        throw SignalingError(
            .certificateNotTrusted, activity: activity,
            cause: "the certificate of \(endpoint.authority) is valid from \(day(own.notBefore)) to "
                + "\(day(own.notAfter)), and this machine's clock says \(day(now))",
            advice: now < own.notBefore
                ? "Set this machine's clock: `timedatectl set-ntp true`, or `date -s`."
                : "If this machine's clock is right, the exchange needs a new certificate; or else set the clock: `timedatectl "
                    + "set-ntp true`.")
    }
}

extension RESTClient {
    fileprivate func enroll(
        _ request: EnrollmentRequest, doing activity: String
    ) async throws(ServiceFailure) -> EnrollmentResponse {
        let question = Question(
            method: .POST, base: addresses.authentication, path: "/v1.1/enroll",
            authorization: "Basic \(appToken)", body: try Self.encode(request, doing: activity), activity: activity)
        return try await withClient { client async throws(ServiceFailure) in
            try await ask(question, of: client, for: EnrollmentResponse.self)
        }
    }
}
