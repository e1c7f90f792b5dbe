/// What a password must be to be set (NIST SP 800-63B §5.1.1.2): long enough, and none of the first that anybody tries.
///
/// It is for passwords that are set. Of one that is kept as a hash already nobody can tell how long it is.
public enum PasswordRule {
    /// Characters that it has at least: Unicode scalars, as they are typed.
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
