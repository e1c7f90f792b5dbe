import ConfigReader
import Enrollment
import ExchangeCore
import HTTPTransport
import Logging
import NIOCore
import NIOPosix
import SignalWire
import Core

/// Login by key, and how a device joins (contract AUTH-13).
extension RESTService {
    /// What a login by key has to sign. Everybody gets one, whether there is such a user or not.
    func challenge(_ request: RESTRequest) -> HTTPAnswer {
        let (body, key): (ChallengeRequest, DeviceKeyText)
        do {
            body = try SignalCoding.decode(ChallengeRequest.self, from: request.body)
        } catch {
            return .failure(.badRequest, "The body is not a request for a challenge: \(error).", trace: request.trace)
        }
        guard let given = DeviceKeyText(body.publicKey) else { return noKey(request) }
        key = given
        let challenge = challenges.make(for: body.userID, key: key, random: FreshSecret.bytes(16), at: hub.now)
        return .success(
            ChallengeResponse(challenge: challenge, expiresIn: LoginChallenges.lifetime.seconds), trace: request.trace)
    }

    /// A login whose attempt was taken from the address.
    func login(
        byKey body: LoginRequest, _ app: ApplicationKey, _ request: RESTRequest, then reply: (HTTPAnswer) -> Void
    ) {
        guard let user = body.userID, let text = body.publicKey, let challenge = body.challenge,
            let signature = body.signature
        else {
            guesses.abandoned(nil, from: request.client, at: hub.now)
            let message = "A login of type \"Key\" needs user_id, public_key, challenge and signature."
            return reply(.failure(.badRequest, message, trace: request.trace))
        }
        guard let key = DeviceKeyText(text) else {
            guesses.abandoned(nil, from: request.client, at: hub.now)
            return reply(noKey(request))
        }
        let account = accounts.account(called: user)
        guard
            Account.isLogin(
                of: account, as: user.text, key: key, challenge: challenge, signature: signature.secret)
        else { return reply(refusal(.wrongKey, request)) }
        do throws(LoginChallenges.Refusal) {
            try challenges.take(challenge, of: user, key: key, at: hub.now)
        } catch {
            guesses.abandoned(nil, from: request.client, at: hub.now)
            switch error {
            case .notGood: return reply(refusal(.challengeExpired, request))
            case .full:
                let message = "Too many logins at once."
                return reply(.failure(.tooManyRequests, message, trace: request.trace, retryAfterSeconds: 60))
            }
        }
        finish(account, nil, app, .wrongKey, request, then: reply)
    }

    // MARK: - Joining

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
        guard let key = DeviceKeyText(body.publicKey), Account.isUsable(key) else { return reply(noKey(request)) }
        switch enrollmentGuesses.judge(secret, of: accounts, from: request.client, at: hub.now) {
        case .known: break
        // Nothing is read or written for one who guesses.
        case .unknown: return reply(refusal(.enrollmentUnknown, request))
        case .wait(let wait):
            hub.countRefusedLogin()
            logger.notice("Refused an enrolment", metadata: ["code": "tooManyRequests", "trace": "\(request.trace)"])
            let message = "Too many wrong codes; wait a little."
            return reply(
                .failure(
                    .tooManyRequests, message, trace: request.trace,
                    retryAfterSeconds: max(1, Int(wait.seconds.rounded(.up)))))
        }
        guard let file = configuration.usersFile else { return reply(refusal(.enrollmentUnknown, request)) }
        guard Account.isEnrollment(secret, key: key, signature: body.signature.secret) else {
            return reply(.failure(.badRequest, "That key did not make the signature.", trace: request.trace))
        }
        guard passwordChecks < Self.maximumPasswordChecks else {
            let message = "Too many logins at once."
            return reply(.failure(.tooManyRequests, message, trace: request.trace, retryAfterSeconds: 1))
        }
        passwordChecks += 1
        enroll(secret, key, in: file, attemptsLeft: Self.lockAttempts) { [self] result in
            passwordChecks -= 1
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
        passwordThread.runIfActive(eventLoop: hub.loop) { () -> Result<Enrolled, any Error> in
            Result {
                try Enrolled(secret, key, in: file, beside: configured, at: WallClock.now.unixMilliseconds / 1_000)
            }
        }
        .assumeIsolated()
        .whenComplete { [self] result in
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
        case .unknown: return refusal(.enrollmentUnknown, request)
        case .expired: return refusal(.enrollmentExpired, request)
        case .used: return refusal(.enrollmentUsed, request)
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

    private func noKey(_ request: RESTRequest) -> HTTPAnswer {
        let message = "A public_key must be the 32 bytes of an Ed25519 key in base64url, not of small order."
        return .failure(.badRequest, message, trace: request.trace)
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
        users = try file.read(beside: configured)
    }
}
