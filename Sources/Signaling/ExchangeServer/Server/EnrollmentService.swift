import ConfigReader
import Enrollment
import ExchangeCore
import HTTPTransport
import Logging
import NIOCore
import SignalWire
import Core
import Realtime

/// How a device joins by a code (contract AUTH-13).
///
/// Lives on the hub's event loop; the users file is changed on the thread that checks passwords.
final class EnrollmentService {
    private let hub: ExchangeHub
    private var configuration: ExchangeConfiguration
    private var guesses = EnrollmentGuard()
    private let passwords: PasswordThread
    private let refusals: LoginRefusals
    private let logger: Logger

    init(hub: ExchangeHub, configuration: ExchangeConfiguration, passwords: PasswordThread, logger: Logger) {
        self.hub = hub
        self.configuration = configuration
        self.passwords = passwords
        refusals = LoginRefusals(hub: hub, logger: logger)
        self.logger = logger
    }

    /// What may change while the exchange runs is as here from now on.
    func adopt(_ configuration: ExchangeConfiguration) { self.configuration = configuration }

    /// Enrols the device that presents a code. The answer is sent after the result is written.
    func enroll(_ request: RESTRequest, then reply: @escaping (HTTPAnswer) -> Void) {
        let body: EnrollmentRequest
        do {
            body = try SignalCoding.decode(EnrollmentRequest.self, from: request.body)
        } catch {
            return reply(.failure(.badRequest, "The body is not an enrolment: \(error).", trace: request.trace))
        }
        guard let secret = EnrollmentSecret(body.code.secret) else {
            let message = "A code has \(EnrollmentSecret.count) letters and digits."
            return reply(.failure(.badRequest, message, trace: request.trace))
        }
        guard let key = DeviceKeyText(body.publicKey), Account.isUsable(key) else {
            return reply(refusals.noKey(request))
        }
        switch guesses.judge(secret, of: hub.accounts, from: request.client, at: hub.now) {
        case .known: break
        // Nothing is read or written for one who guesses.
        case .unknown: return reply(refusals.answer(.enrollmentUnknown, request))
        case .wait(let wait):
            let message = "Too many wrong codes; wait a little."
            return reply(refusals.tooMany("Refused an enrolment", message, wait: wait, request))
        }
        guard let file = configuration.usersFile else { return reply(refusals.answer(.enrollmentUnknown, request)) }
        guard Account.isEnrollment(secret, key: key, signature: body.signature.secret) else {
            return reply(.failure(.badRequest, "That key did not make the signature.", trace: request.trace))
        }
        guard passwords.begin() else { return reply(refusals.busy(request)) }
        enroll(secret, key, in: file, attemptsLeft: Self.lockAttempts) { [self] result in
            passwords.end()
            switch result {
            case .success(let enrolled): reply(welcome(enrolled, request))
            case .failure(let error): reply(refusal(toEnroll: error, request))
            }
        }
    }

    /// How often, and how long after each other, the users file is tried while another process changes it. The thread, which
    /// checks passwords too, never waits for that process.
    private static let (lockAttempts, lockPause) = (40, TimeAmount.milliseconds(50))

    private func enroll(
        _ secret: EnrollmentSecret, _ key: DeviceKeyText, in file: UsersFile, attemptsLeft: Int,
        then reply: @escaping (Result<Enrolled, any Error>) -> Void
    ) {
        let configured = configuration.users
        passwords.run { () -> Result<Enrolled, any Error> in
            Result {
                try Enrolled(
                    secret, key, in: file, beside: configured, at: MonotonicClock.wallTime.unixMilliseconds / 1_000)
            }
        } then: { [self] result in
            let result = result.flatMap { $0 }
            guard case .failure(let error as FileChangeError) = result, error.isForNow, attemptsLeft > 1 else {
                return reply(result)
            }
            hub.loop.assumeIsolated().scheduleTask(in: Self.lockPause) { [self] in
                enroll(secret, key, in: file, attemptsLeft: attemptsLeft - 1, then: reply)
            }
        }
    }

    private func welcome(_ enrolled: Enrolled, _ request: RESTRequest) -> HTTPAnswer {
        hub.replaceFileUsers(enrolled.users)
        logger.notice(
            "A device joined with a code", metadata: ["user": "\(enrolled.user)", "trace": "\(request.trace)"])
        return .success(
            EnrollmentResponse(userID: enrolled.user, enrollment: enrolled.name), trace: request.trace)
    }

    private func refusal(toEnroll error: any Error, _ request: RESTRequest) -> HTTPAnswer {
        switch error as? EnrollmentRecord.Refusal {
        case .unknown: return refusals.answer(.enrollmentUnknown, request)
        case .expired: return refusals.answer(.enrollmentExpired, request)
        case .used: return refusals.answer(.enrollmentUsed, request)
        case .tooManyKeys:
            let message =
                "The user already has \(DeviceKey.perAccount) keys; `handset user revoke --keys` removes them."
            return .failure(.notAllowed, message, trace: request.trace)
        case nil:
            if let error = error as? FileChangeError, error.isForNow {
                logger.warning("No device can join now", metadata: ["error": "\(error)"])
                let message = "The users file is being changed; try again."
                return .failure(.unavailable, message, trace: request.trace, retryAfterSeconds: 5)
            }
            logger.error(
                "The users file cannot be written, so no device can join", metadata: ["error": "\(error)"])
            let message = "The exchange cannot write its users file."
            return .failure(.unavailable, message, trace: request.trace, retryAfterSeconds: 60)
        }
    }
}

/// What an enrolment has changed.
private struct Enrolled: Sendable {
    let user: UserID
    /// What the exchange calls the enrolment.
    let name: String
    /// All users of the file.
    let users: [Account]

    /// Lets a device join, in the file. Two that come with one code take turns.
    init(
        _ secret: EnrollmentSecret, _ key: DeviceKeyText, in file: UsersFile, beside configured: [Account],
        at now: Int64
    ) throws {
        var joined: (account: Account, key: DeviceKey)?
        try file.change(patience: 0) { users in
            joined = try users.enroll(secret, key: key, name: FreshSecret.text(bytes: 16), at: now)
        }
        guard let joined else { throw EnrollmentRecord.Refusal.unknown }
        user = joined.account.id
        name = joined.key.enrollment
        users = try file.readExisting(beside: configured)
    }
}
