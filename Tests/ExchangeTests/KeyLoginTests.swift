import Core
import Cryptography
import Enrollment
import SignalWire
import Testing

@testable import ExchangeCore

@Suite struct KeyLoginTests {
    private func at(_ seconds: Double) -> Instant { Instant.zero.advanced(by: .seconds(seconds)) }
    private func address(_ text: String) throws -> ClientAddress { try #require(ClientAddress(text)) }

    /// A device with its private key.
    private struct Device {
        let key: Ed25519.PrivateKey
        let text: DeviceKeyText

        init(_ byte: UInt8) throws {
            key = try #require(Ed25519.PrivateKey(seed: Array(repeating: byte, count: 32)))
            text = try #require(DeviceKeyText(bytes: key.publicKey))
        }

        func sign(_ user: String, _ enrollment: String, _ challenge: String) -> String {
            Base64URL.text(
                key.sign(KeyProof.loggingIn(user: user, enrollment: enrollment, key: text, challenge: challenge)))
        }
    }

    private static let here = "enrollment-at-this-one-exchange"
    private static let random = [UInt8](0..<16)

    private func account(_ device: Device, _ enrollment: String = here) throws -> Account {
        Account(id: "alice", keys: [try #require(DeviceKey(key: device.text, enrollment: enrollment))])
    }

    @Test(
        "AUTH-13: A device that signs the challenge with its own key is let in, and no other key, user or challenge is")
    func signature() throws {
        let (device, other) = (try Device(1), try Device(2))
        let account = try account(device)
        let challenge = LoginChallenges(secret: [1]).make(
            for: "alice", key: device.text, random: Self.random, at: at(0))
        func isLogin(
            of account: Account?, _ device: Device, as name: String = "alice", _ challenge: String, _ signature: String
        ) -> Bool {
            Account.isLogin(of: account, as: name, key: device.text, challenge: challenge, signature: signature)
        }
        let good = device.sign("alice", Self.here, challenge)
        #expect(isLogin(of: account, device, challenge, good))
        #expect(!isLogin(of: nil, device, challenge, good), "no such user")
        #expect(!isLogin(of: account, device, as: "bob", challenge, good), "signed for another user")
        #expect(!isLogin(of: account, other, challenge, other.sign("alice", Self.here, challenge)), "another key")
        #expect(!isLogin(of: account, device, challenge, other.sign("alice", Self.here, challenge)))
        #expect(!isLogin(of: account, device, challenge + "A", good), "another challenge")
        for broken in ["", "A", String(good.dropLast()), good + "A", String(repeating: "A", count: 86)] {
            #expect(!isLogin(of: account, device, challenge, broken))
        }
    }

    @Test("AUTH-13: A signature for one exchange is invalid at another that knows the same user and key")
    func anotherExchange() throws {
        let device = try Device(1)
        let challenges = LoginChallenges(secret: Array(repeating: 1, count: 32))
        var others = LoginChallenges(secret: Array(repeating: 2, count: 32))
        let challenge = challenges.make(for: "alice", key: device.text, random: Self.random, at: at(0))
        let signature = device.sign("alice", Self.here, challenge)
        let there = try account(device, "enrollment-at-the-other-one")
        #expect(
            !Account.isLogin(of: there, as: "alice", key: device.text, challenge: challenge, signature: signature))
        #expect(throws: LoginChallenges.Refusal.notGood) {
            try others.take(challenge, of: "alice", key: device.text, at: at(1))
        }
    }

    @Test("AUTH-13: A challenge is taken once, within a minute, of the user and the key that asked for it")
    func challenges() throws {
        let (device, other) = (try Device(1), try Device(2))
        var challenges = LoginChallenges(secret: Array(repeating: 1, count: 32))
        let first = challenges.make(for: "alice", key: device.text, random: Self.random, at: at(0))
        #expect(throws: LoginChallenges.Refusal.notGood, "another user's") {
            try challenges.take(first, of: "bob", key: device.text, at: at(1))
        }
        #expect(throws: LoginChallenges.Refusal.notGood, "another key's") {
            try challenges.take(first, of: "alice", key: other.text, at: at(1))
        }
        try challenges.take(first, of: "alice", key: device.text, at: at(1))
        for second in [1.0, 30, 59, 61, 3_600] {
            #expect(throws: LoginChallenges.Refusal.notGood, "a replay after \(second) s") {
                try challenges.take(first, of: "alice", key: device.text, at: at(second))
            }
        }
        let second = challenges.make(for: "alice", key: device.text, random: [9] + Self.random.dropFirst(), at: at(100))
        #expect(throws: LoginChallenges.Refusal.notGood, "too late") {
            try challenges.take(second, of: "alice", key: device.text, at: at(160))
        }
        let third = challenges.make(for: "alice", key: device.text, random: Self.random, at: at(200))
        for index in third.indices {
            var forged = third
            forged.replaceSubrange(index...index, with: third[index] == "A" ? "B" : "A")
            #expect(throws: LoginChallenges.Refusal.notGood) {
                try challenges.take(forged, of: "alice", key: device.text, at: at(201))
            }
        }
        try challenges.take(third, of: "alice", key: device.text, at: at(259))
    }

    @Test("AUTH-13: Asking for challenges fills no memory; only logins are remembered, within bounds")
    func boundedMemory() throws {
        let device = try Device(1)
        let capacity = 300
        var challenges = LoginChallenges(secret: Array(repeating: 1, count: 32), capacity: capacity)
        func challenge(_ number: Int, at now: Instant) -> String {
            let random = (0..<16).map { UInt8(truncatingIfNeeded: number >> ($0 * 8 % 32)) }
            return challenges.make(for: "alice", key: device.text, random: random, at: now)
        }
        for number in 0..<capacity {
            try challenges.take(challenge(number, at: at(0)), of: "alice", key: device.text, at: at(0))
        }
        let next = challenge(capacity, at: at(0))
        #expect(throws: LoginChallenges.Refusal.full) {
            try challenges.take(next, of: "alice", key: device.text, at: at(1))
        }
        let later = challenge(1, at: at(60))
        try challenges.take(later, of: "alice", key: device.text, at: at(60))
    }

    // MARK: - Joining

    private static let now: Int64 = 1_800_000_000

    private func secret(_ text: String = "ABCD-0000-1111-2222-3333") throws -> EnrollmentSecret {
        try #require(EnrollmentSecret(text))
    }

    private func users(_ secret: EnrollmentSecret) -> [Account] {
        var alice = Account(id: "alice")
        let isAdded = alice.add(EnrollmentRecord(secret, at: Self.now), at: Self.now)
        #expect(isAdded)
        return [Account(id: "bob"), alice]
    }

    @Test("AUTH-13: Of two devices that come with one code the first joins; its repeated request has the same answer")
    func race() throws {
        let (first, second, code) = (try Device(1), try Device(2), try secret())
        var users = users(code)
        let joined = try users.enroll(code, key: first.text, name: Self.here, at: Self.now + 1)
        #expect(joined.account.id == "alice" && joined.key.enrollment == Self.here)
        #expect(throws: EnrollmentRecord.Refusal.used) {
            try users.enroll(code, key: second.text, name: "another-enrollment-name", at: Self.now + 1)
        }
        let before = users
        let again = try users.enroll(code, key: first.text, name: "another-enrollment-name", at: Self.now + 599)
        #expect(again.key == joined.key && users == before, "the answer was lost, and nothing is changed")
        // A device that joins again keeps its enrolment, and the code is used.
        let other = try secret("WXYZ-0000-1111-2222-3333")
        let isAdded = users[1].add(EnrollmentRecord(other, at: Self.now), at: Self.now)
        #expect(isAdded)
        #expect(
            try users.enroll(other, key: first.text, name: "another-enrollment-name", at: Self.now).key == joined.key)
        #expect(throws: EnrollmentRecord.Refusal.used) {
            try users.enroll(other, key: second.text, name: "another-enrollment-name", at: Self.now + 1)
        }
        // The key of a stolen device is removed, and its code brings it back no more.
        users[1].keys = []
        #expect(throws: EnrollmentRecord.Refusal.used) {
            try users.enroll(code, key: first.text, name: Self.here, at: Self.now + 2)
        }
    }

    @Test("AUTH-13: A code is good for ten minutes, and not while the exchange's clock is before its making")
    func expiry() throws {
        let (device, code) = (try Device(1), try secret())
        for (offset, isGood) in [(-3_600, false), (-1, false), (0, true), (600, true), (601, false), (90_000, false)] {
            var users = users(code)
            let now = Self.now + Int64(offset)
            if isGood {
                _ = try users.enroll(code, key: device.text, name: Self.here, at: now)
            } else {
                #expect(throws: EnrollmentRecord.Refusal.expired) {
                    try users.enroll(code, key: device.text, name: Self.here, at: now)
                }
                #expect(users[1].keys.isEmpty)
            }
        }
        var users = users(code)
        let wrong = try secret("ABCD-0000-1111-2222-3334")
        #expect(throws: EnrollmentRecord.Refusal.unknown) {
            try users.enroll(wrong, key: device.text, name: Self.here, at: Self.now)
        }
    }

    @Test("AUTH-13: An account has bounded codes and keys; used and old codes make room for new ones")
    func bounds() throws {
        var alice = Account(id: "alice")
        func code(_ number: Int) throws -> EnrollmentSecret {
            let digits = String(number)
            return try secret(String(repeating: "0", count: 20 - digits.count) + digits)
        }
        func add(_ number: Int, at now: Int64) throws -> Bool {
            alice.add(EnrollmentRecord(try code(number), at: now), at: now)
        }
        for number in 0..<EnrollmentRecord.perAccount {
            #expect(try add(number, at: Self.now))
        }
        #expect(try !add(99, at: Self.now))
        #expect(try add(99, at: Self.now + 601))
        #expect(alice.enrollments.count == EnrollmentRecord.perAccount)
        var users = [alice]
        _ = try users.enroll(try code(99), key: try Device(1).text, name: Self.here, at: Self.now + 602)
        users[0].keys = try (0..<DeviceKey.perAccount).map { number in
            let key = try #require(DeviceKeyText(bytes: Array(repeating: UInt8(100 + number), count: 32)))
            return try #require(DeviceKey(key: key, enrollment: Self.here))
        }
        let isAdded = users[0].add(EnrollmentRecord(try code(98), at: Self.now + 603), at: Self.now + 603)
        #expect(isAdded)
        #expect(throws: EnrollmentRecord.Refusal.tooManyKeys) {
            try users.enroll(try code(98), key: try Device(2).text, name: Self.here, at: Self.now + 604)
        }
    }

    @Test("AUTH-13: Keys and codes are read from a users file as they are written, and anything else is refused")
    func texts() throws {
        let device = try Device(1)
        let key = try #require(DeviceKey(key: device.text, enrollment: Self.here))
        #expect(DeviceKey(key.text) == key)
        var users = users(try secret())
        let open = users[1].enrollments[0]
        #expect(EnrollmentRecord(open.text) == open)
        _ = try users.enroll(try secret(), key: device.text, name: Self.here, at: Self.now)
        let used = users[1].enrollments[0]
        #expect(EnrollmentRecord(used.text) == used && used.usedBy == device.text)
        for text in [
            "", "ed25519", "ed25519..", "rsa." + key.text.dropFirst(8), key.text + ".x", "ed25519.A.\(Self.here)",
            "ed25519.\(device.text.text).short", "ed25519.\(device.text.text).a-name-with-a-space in it",
        ] { #expect(DeviceKey(text) == nil, "\(text)") }
        for text in [
            "", "ABCD", "ABCD.00.1", String(used.text.dropLast()), used.text + "A", open.text + "x", "A" + open.text,
        ] {
            #expect(EnrollmentRecord(text) == nil, "\(text)")
        }
    }

    @Test("AUTH-13: A guesser is slowed down from one address and from all, and cannot lock the right device out")
    func guessing() throws {
        var limits = EnrollmentGuard()
        let home = try address("192.0.2.1")
        let (code, other) = (try secret(), try secret("WXYZ-0000-1111-2222-3333"))
        var alice = Account(id: "alice")
        for code in [code, other] {
            let isAdded = alice.add(EnrollmentRecord(code, at: Self.now), at: Self.now)
            #expect(isAdded)
        }
        let directory = AccountDirectory([alice])
        // Of some the first characters are right, and of some all but the last.
        let wrong = try ["0BCD-0000-1111-2222-3333", "ABCD-1111-2222-3333-4444", "ABCD-0000-1111-2222-3334"].map(secret)
        var attempts = 0
        func guess(from address: ClientAddress, at now: Instant) -> EnrollmentGuard.Verdict {
            attempts += 1
            return limits.judge(wrong[attempts % 3], of: directory, from: address, at: now)
        }
        // The guesser is behind the same address as the right device.
        var admitted = 0
        for number in 0..<1_000 {
            guard guess(from: home, at: at(0)) == .unknown else { continue }
            #expect(number == admitted, "how a guess is answered depends on how many there were, and on nothing in it")
            admitted += 1
        }
        #expect(admitted == EnrollmentGuard.perAddress)
        // And then everywhere.
        for number in 0..<5_000 {
            let stranger = try address("198.51.\(number / 250).\(number % 250)")
            if guess(from: stranger, at: at(0)) == .unknown { admitted += 1 }
        }
        #expect(admitted == EnrollmentGuard.total)
        for _ in wrong { #expect(guess(from: try address("203.0.113.1"), at: at(1)) != .unknown) }
        func join(_ code: EnrollmentSecret, from address: ClientAddress) -> EnrollmentGuard.Verdict {
            limits.judge(code, of: directory, from: address, at: at(1))
        }
        #expect(join(code, from: home) == .known, "the right device has the whole code")
        // Who has it may still not have the users file read without end.
        var joins = 1
        for _ in 0..<1_000 where join(code, from: try address("203.0.113.2")) == .known { joins += 1 }
        #expect(joins == EnrollmentGuard.perCode)
        #expect(join(other, from: home) == .known, "another code is not affected")
    }

    @Test(
        "AUTH-13: A key of small order is refused: it logs no user in, and no device joins with it"
    )
    func smallOrder() throws {
        let points = [
            "0000000000000000000000000000000000000000000000000000000000000000",
            "0100000000000000000000000000000000000000000000000000000000000000",
            "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
            "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
            "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        ]
        for point in points {
            for sign: UInt8 in [0, 0x80] {
                var bytes = stride(from: 0, to: 64, by: 2).compactMap {
                    UInt8(point.dropFirst($0).prefix(2), radix: 16)
                }
                bytes[31] |= sign
                let key = try #require(DeviceKeyText(bytes: bytes))
                #expect(!Account.isUsable(key))
                let account = Account(id: "alice", keys: [try #require(DeviceKey(key: key, enrollment: Self.here))])
                // R + k·A is the neutral element, as S·B is with S = 0, for an eighth of all messages or more.
                let forged = Base64URL.text(bytes + Array(repeating: 0, count: 32))
                let identity = Base64URL.text([1] + Array(repeating: 0, count: 63))
                for number in 0..<100 {
                    for signature in [forged, identity] {
                        #expect(
                            !Account.isLogin(
                                of: account, as: "alice", key: key, challenge: "\(number)", signature: signature))
                        #expect(
                            !Account.isEnrollment(
                                try secret("ABCD-0000-1111-2222-\(1_000 + number)"), key: key, signature: signature))
                    }
                }
            }
        }
        #expect(Account.isUsable(try Device(1).text))
    }
}
