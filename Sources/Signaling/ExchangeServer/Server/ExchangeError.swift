import ExchangeCore
/// An exchange could not start.
///
/// Match on `code`; print the error itself. The message says what was tried, what went wrong and what to try.
public struct ExchangeError: Error, Sendable, CustomStringConvertible {
    /// What kind of thing went wrong.
    public struct Code: Hashable, Sendable {
        private let name: String

        /// Without TLS the exchange listens on loopback addresses only, unless the configuration explicitly allows
        /// more.
        public static let plainTextRefused = Code(name: "plainTextRefused")
        /// Another process listens on that port.
        public static let portInUse = Code(name: "portInUse")
        /// The address is not one of this machine's, or not one at all, or may not be used.
        public static let addressNotUsable = Code(name: "addressNotUsable")
        /// The certificate or its key cannot be read or used.
        public static let certificateNotUsable = Code(name: "certificateNotUsable")
        /// The socket of the control interface cannot be made.
        public static let controlNotUsable = Code(name: "controlNotUsable")
        /// The users file is missing, of which an earlier run with this database had users.
        public static let usersFileMissing = Code(name: "usersFileMissing")
        /// The database cannot be opened or read.
        public static let databaseNotUsable = Code(name: "databaseNotUsable")
    }

    /// What kind of thing went wrong.
    public let code: Code
    /// What was tried, what went wrong, and what to try.
    public let description: String

    init(_ code: Code, _ description: String) {
        self.code = code
        self.description = description
    }
}
