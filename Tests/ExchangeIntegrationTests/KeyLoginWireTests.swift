import Core
import Cryptography
import Enrollment
import ExchangeCore
import ExchangeServer
import Foundation
import SignalWire
import Testing

private let json = ["Authorization": ServerFixture.basic, "Content-Type": "application/json; charset=utf-8"]

/// Login by key, over HTTP.
@Suite(.timeLimit(.minutes(5))) struct KeyLoginWireTests {
    private struct Device {
        let key: Ed25519.PrivateKey
        let text: DeviceKeyText

        init() throws {
            var generator = SystemRandomNumberGenerator()
            key = try #require(Ed25519.PrivateKey(using: &generator))
            text = try #require(DeviceKeyText(bytes: key.publicKey))
        }

        func enrolling(_ secret: EnrollmentSecret) -> EnrollmentRequest {
            let signature = Base64URL.text(key.sign(KeyProof.enrolling(secret, key: text)))
            return EnrollmentRequest(
                code: Redacted(secret.text), publicKey: text.text, signature: Redacted(signature))
        }
    }

    private func post(_ path: String, _ body: some Encodable, port: Int) async throws -> RawClient.Response {
        let client = try await RawClient.connect(port: port)
        defer { client.close() }
        return await client.request(
            "POST", path, json, body: String(decoding: try SignalCoding.encode(body), as: UTF8.self))
    }

    private func code(_ response: RawClient.Response) throws -> String {
        try SignalCoding.decode(RESTFailure.self, from: Array(response.body.utf8)).error.code
    }

    private func challenge(_ device: Device, _ user: UserID, port: Int) async throws -> String {
        let response = try await post(
            "/v1.1/login/challenge", ChallengeRequest(userID: user, publicKey: device.text.text), port: port)
        try #require(response.status == 200, "\(response.body)")
        return try SignalCoding.decode(ChallengeResponse.self, from: Array(response.body.utf8)).challenge
    }

    private func login(
        _ device: Device, _ user: UserID, _ enrollment: String, _ challenge: String, port: Int
    ) async throws -> RawClient.Response {
        let proof = KeyProof.loggingIn(
            user: user.text, enrollment: enrollment, key: device.text, challenge: challenge)
        let request = LoginRequest(
            userID: user, publicKey: device.text.text, challenge: challenge,
            signature: Redacted(Base64URL.text(device.key.sign(proof))))
        return try await post("/v1.1/login", request, port: port)
    }

    private func configuration(
        _ secret: EnrollmentSecret, at now: Int64 = Int64(Date().timeIntervalSince1970)
    ) throws -> (ExchangeConfiguration, UsersFile, URL) {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("keys-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let file = UsersFile(path: folder.appendingPathComponent("users.yaml").path)
        try file.change { users in
            var carol = Account(id: "carol", publicIDs: ["carol@localhost"])
            _ = carol.add(EnrollmentRecord(secret, at: now), at: now)
            users.append(carol)
        }
        var configuration = ServerFixture.configuration()
        configuration.usersFile = file
        configuration.fileUsers = try file.read()
        return (configuration, file, folder)
    }

    private func secret() -> EnrollmentSecret {
        var generator = SystemRandomNumberGenerator()
        return EnrollmentSecret(using: &generator)
    }

    @Test("AUTH-13: A device joins by a code and logs in by its key; replays and other users' logins are refused")
    func joining() async throws {
        let (device, secret, log) = (try Device(), secret(), LogCapture())
        let (configuration, file, folder) = try configuration(secret)
        defer { try? FileManager.default.removeItem(at: folder) }
        try await ServerFixture.withServer(configuration, log: log) { server in
            let port = server.port
            let answer = try await post("/v1.1/enroll", device.enrolling(secret), port: port)
            try #require(answer.status == 200, "\(answer.body)")
            let joined = try SignalCoding.decode(EnrollmentResponse.self, from: Array(answer.body.utf8))
            #expect(joined.userID == "carol")
            #expect(try file.read()[0].keys.map(\.enrollment) == [joined.enrollment], "only the public half is kept")

            for name in ["carol", "carol@localhost"] as [UserID] {
                let challenge = try await challenge(device, name, port: port)
                let first = try await login(device, name, joined.enrollment, challenge, port: port)
                #expect(first.status == 200, "\(first.body)")
                let replay = try await login(device, name, joined.enrollment, challenge, port: port)
                #expect(try replay.status == 401 && code(replay) == "challengeExpired")
            }
            let other = try await challenge(device, "carol", port: port)
            #expect(try code(try await login(device, "bob", joined.enrollment, other, port: port)) == "wrongKey")
            #expect(
                try code(try await login(device, "carol", "another-exchange's-name", other, port: port)) == "wrongKey")
            let stranger = try Device()
            let theirs = try await challenge(stranger, "carol", port: port)
            #expect(try code(try await login(stranger, "carol", joined.enrollment, theirs, port: port)) == "wrongKey")
            // Nobody learns who there is.
            #expect(try await !challenge(stranger, "nobody", port: port).isEmpty)
        }
        #expect(!log.text.contains(secret.characters) && !log.text.contains(secret.text))
    }

    @Test(
        "AUTH-13: While another process holds the lock of the users file logins continue, and a joining device gets a time to retry"
    )
    func standingLock() async throws {
        let (device, secret) = (try Device(), secret())
        let (configuration, file, folder) = try configuration(secret)
        defer { try? FileManager.default.removeItem(at: folder) }
        try await ServerFixture.withServer(configuration) { server in
            let lock = open(folder.path, O_RDONLY | O_DIRECTORY)
            try #require(flock(lock, LOCK_EX | LOCK_NB) == 0)
            async let joining = post("/v1.1/enroll", device.enrolling(secret), port: server.port)
            // The thread that checks passwords is free meanwhile.
            let login = LoginRequest(userID: "alice", password: Redacted(ServerFixture.password))
            for _ in 0..<3 {
                #expect(try await post("/v1.1/login", login, port: server.port).status == 200)
            }
            let answer = try await joining
            #expect(answer.status == 503, "\(answer.body)")
            #expect(answer.body.contains("The users file is being changed; try again."))
            close(lock)
            let again = try await post("/v1.1/enroll", device.enrolling(secret), port: server.port)
            #expect(again.status == 200, "\(again.body)")
            #expect(try file.read()[0].keys.count == 1)
        }
    }

    @Test(
        "AUTH-13: Of ten devices that come with one code at once exactly one joins, and its repeated request is answered again"
    )
    func race() async throws {
        let secret = secret()
        let (configuration, file, folder) = try configuration(secret)
        defer { try? FileManager.default.removeItem(at: folder) }
        try await ServerFixture.withServer(configuration) { server in
            let devices = try (0..<10).map { _ in try Device() }
            let statuses = try await withThrowingTaskGroup(of: (Int, Int).self) { group in
                for (index, device) in devices.enumerated() {
                    let request = device.enrolling(secret)
                    group.addTask {
                        (index, try await post("/v1.1/enroll", request, port: server.port).status)
                    }
                }
                return try await group.reduce(into: [Int: Int]()) { $0[$1.0] = $1.1 }
            }
            let winners = statuses.filter { $0.value == 200 }.keys
            #expect(winners.count == 1 && statuses.values.allSatisfy { [200, 401].contains($0) }, "\(statuses)")
            let winner = devices[try #require(winners.first)]
            #expect(try file.read()[0].keys.map(\.key) == [winner.text])
            let again = try await post("/v1.1/enroll", winner.enrolling(secret), port: server.port)
            #expect(again.status == 200, "\(again.body)")
            let late = try await post("/v1.1/enroll", try Device().enrolling(secret), port: server.port)
            #expect(try code(late) == "enrollmentUsed")
        }
    }

    @Test(
        "AUTH-13: An old code, a wrong one and one without the key's signature are refused; guessing is slowed down, and the right device still joins"
    )
    func refusals() async throws {
        let (secret, device) = (secret(), try Device())
        let (configuration, _, folder) = try configuration(secret)
        defer { try? FileManager.default.removeItem(at: folder) }
        try await ServerFixture.withServer(configuration) { server in
            let port = server.port
            var stolen = device.enrolling(secret)
            stolen.publicKey = try Device().text.text
            let wrongSignature = try await post("/v1.1/enroll", stolen, port: port)
            #expect(try code(wrongSignature) == "badRequest")
            var answers: [String: Int] = [:]
            for _ in 0..<40 {
                let answer = try await post("/v1.1/enroll", device.enrolling(self.secret()), port: port)
                answers[try code(answer), default: 0] += 1
            }
            #expect(answers["enrollmentUnknown", default: 0] <= 31 && answers["tooManyRequests", default: 0] >= 9)
            let right = try await post("/v1.1/enroll", device.enrolling(secret), port: port)
            #expect(right.status == 200, "\(right.body)")
        }
        try await ServerFixture.withServer(try self.configuration(secret).0) { server in
            // A code of which all is right but the last character is answered as one of which nothing is.
            let near = String(secret.characters.dropLast()) + (secret.characters.hasSuffix("0") ? "1" : "0")
            let wrong = [try #require(EnrollmentSecret(near)), self.secret()]
            for attempt in 0..<40 {
                let answer = try await post("/v1.1/enroll", device.enrolling(wrong[attempt % 2]), port: server.port)
                #expect(try code(answer) == (attempt < 30 ? "enrollmentUnknown" : "tooManyRequests"), "\(attempt)")
            }
            var weak = device.enrolling(secret)
            weak.publicKey = Base64URL.text([1] + Array(repeating: 0, count: 31))
            weak.signature = Redacted(Base64URL.text([1] + Array(repeating: 0, count: 63)))
            let refused = try await post("/v1.1/enroll", weak, port: server.port)
            #expect(try refused.status == 400 && code(refused) == "badRequest", "\(refused.body)")
            let right = try await post("/v1.1/enroll", device.enrolling(secret), port: server.port)
            #expect(right.status == 200, "\(right.body)")
        }
        let (old, _, oldFolder) = try self.configuration(secret, at: Int64(Date().timeIntervalSince1970) - 700)
        defer { try? FileManager.default.removeItem(at: oldFolder) }
        try await ServerFixture.withServer(old) { server in
            let answer = try await post("/v1.1/enroll", device.enrolling(secret), port: server.port)
            #expect(try answer.status == 401 && code(answer) == "enrollmentExpired")
        }
    }
}
