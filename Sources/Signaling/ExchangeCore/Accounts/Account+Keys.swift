internal import Core
internal import Cryptography
package import Enrollment

extension Account {
    /// Whether a device that has one of the account's keys has signed this login (contract AUTH-13).
    ///
    /// - Parameters:
    ///   - account: `nil` if there is none.
    ///   - name: The id by which the device called the account.
    ///   - signature: base64url.
    package static func isLogin(
        of account: Account?, as name: String, key: DeviceKeyText, challenge: String, signature: String
    ) -> Bool {
        // The signature is also verified for an unknown user, so that timing does not reveal which users exist.
        let known = account?.keys.first { $0.key == key }
        let proof = KeyProof.loggingIn(user: name, enrollment: known?.enrollment ?? "", key: key, challenge: challenge)
        return isSignature(signature, of: proof, by: key) && known != nil
    }

    /// Whether a key is acceptable as a device key: a key of small order is refused, because anyone can sign with it.
    package static func isUsable(_ key: DeviceKeyText) -> Bool { Ed25519.isPublicKey(key.bytes) }

    /// Whether the enrolling device owns the private key.
    package static func isEnrollment(_ secret: EnrollmentSecret, key: DeviceKeyText, signature: String) -> Bool {
        isSignature(signature, of: KeyProof.enrolling(secret, key: key), by: key)
    }

    private static func isSignature(_ signature: String, of proof: [UInt8], by key: DeviceKeyText) -> Bool {
        guard signature.utf8.count <= 128, let bytes = Base64URL.bytes(of: signature.utf8) else { return false }
        return Ed25519.isSignature(bytes, of: proof, by: key.bytes)
    }
}
