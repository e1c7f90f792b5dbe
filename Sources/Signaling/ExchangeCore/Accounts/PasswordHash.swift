internal import Core
internal import COpenSSL
internal import Cryptography

/// A password as stored: scrypt (RFC 7914) with its parameters and salt, in the PHC string form
/// `$scrypt$ln=15,r=8,p=1$SALT$HASH`, salt and hash in base64 without padding.
public struct PasswordHash: Hashable, Sendable, CustomStringConvertible {
    /// log₂ of the cost; the memory needed is 128 × r × 2^ln bytes.
    private let costExponent: Int
    private let blockSize: Int
    private let parallelization: Int
    private let salt: [UInt8]
    private let hash: [UInt8]

    /// Memory that one verification may take: enough for `ln=17,r=8`.
    private static let maximumMemory = 136 << 20
    private static let hashSize = 32

    /// Hashes a password with a fresh salt. Takes about a tenth of a second and 32 MiB: not for an event loop.
    public static func make(_ password: String) -> PasswordHash {
        var generator = SystemRandomNumberGenerator()
        return make(password, costExponent: 15, using: &generator)
    }

    /// Hashes a password at another cost; tests use a low one.
    static func make(
        _ password: String, costExponent: Int, using generator: inout some RandomNumberGenerator
    ) -> PasswordHash {
        let salt = (0..<16).map { _ in UInt8.random(in: 0...255, using: &generator) }
        let empty = PasswordHash(costExponent: costExponent, blockSize: 8, parallelization: 1, salt: salt, hash: [])
        let hash = empty.derive(password, size: hashSize)
        // The parameters are constants in range, so that scrypt fails only without memory.
        precondition(hash != nil, "scrypt could not get 128 × 8 × 2^\(costExponent) bytes of memory")
        return PasswordHash(
            costExponent: costExponent, blockSize: 8, parallelization: 1, salt: salt, hash: hash ?? [])
    }

    /// Reads the string form; `nil` if `text` is not of it or asks for more memory than is allowed.
    public init?(_ text: String) {
        let parts = text.split(separator: "$", omittingEmptySubsequences: false)
        guard parts.count == 5, parts[0].isEmpty, parts[1] == "scrypt" else { return nil }
        var parameters: [Substring: Int] = [:]
        for parameter in parts[2].split(separator: ",") {
            let pair = parameter.split(separator: "=")
            guard pair.count == 2, let value = Int(pair[1]), parameters[pair[0]] == nil else { return nil }
            parameters[pair[0]] = value
        }
        guard parameters.count == 3, let exponent = parameters["ln"], let size = parameters["r"],
            let lanes = parameters["p"], (1...20).contains(exponent), (1...32).contains(size),
            (1...16).contains(lanes), 128 * size << exponent <= Self.maximumMemory - (1 << 20),
            let salt = Base64.unpaddedBytes(of: parts[3].utf8), let hash = Base64.unpaddedBytes(of: parts[4].utf8),
            (8...64).contains(salt.count), (Self.hashSize...64).contains(hash.count)
        else { return nil }
        self.init(costExponent: exponent, blockSize: size, parallelization: lanes, salt: salt, hash: hash)
    }

    private init(costExponent: Int, blockSize: Int, parallelization: Int, salt: [UInt8], hash: [UInt8]) {
        self.costExponent = costExponent
        self.blockSize = blockSize
        self.parallelization = parallelization
        self.salt = salt
        self.hash = hash
    }

    /// The string form, for a configuration. It is not the password, but worth keeping to oneself.
    public var description: String {
        "$scrypt$ln=\(costExponent),r=\(blockSize),p=\(parallelization)$\(Self.base64(salt))$\(Self.base64(hash))"
    }

    /// Whether `password` is the one. As slow as ``make(_:)``, and as slow when it is not.
    public func matches(_ password: String) -> Bool {
        guard let derived = derive(password, size: hash.count) else { return false }
        return Digest.areEqual(derived, hash)
    }

    private func derive(_ password: String, size: Int) -> [UInt8]? {
        let input = password.utf8.map { CChar(bitPattern: $0) }
        var output = [UInt8](repeating: 0, count: size)
        // Reads and writes exactly the counts that are passed with the arrays.
        let status = unsafe EVP_PBE_scrypt(
            input, input.count, salt, salt.count, 1 << UInt64(costExponent), UInt64(blockSize),
            UInt64(parallelization), UInt64(Self.maximumMemory), &output, output.count)
        return status == 1 ? output : nil
    }

    private static func base64(_ bytes: [UInt8]) -> String { String(Base64.text(bytes).prefix { $0 != "=" }) }
}
