/// Requirements for a new password (NIST SP 800-63B §5.1.1.2): a minimum length, and not one of the most common
/// passwords.
///
/// The rule applies when a password is set. The length of a password that is stored as a hash is unknown.
public enum PasswordRule {
    /// Minimum length, in Unicode scalars as typed.
    public static let minimumLength = 8

    /// Why `password` cannot be set; `nil` if it can. Does not quote it.
    public static func problem(with password: String) -> String? {
        guard password.unicodeScalars.count >= minimumLength else {
            return "a password has at least \(minimumLength) characters; take a longer one, such as four words"
        }
        guard !CommonPasswords.contains(password) else {
            return "this password is one of the thousand most common; take another, such as four words"
        }
        return nil
    }
}
