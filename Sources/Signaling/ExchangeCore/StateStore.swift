/// Where an exchange keeps what outlasts its process, in the core's own terms.
///
/// One process at a time owns what is kept; a store that serves several processes gives each only the users that it
/// owns. Calls block on the disk or the network, so an event loop must not make them. Any thread may call; calls are
/// served one at a time.
public protocol StateStore: Sendable {
    /// Where it is, for people.
    var path: String { get }

    /// The stored state, from which the core continues.
    ///
    /// - Throws: ``StoreError``.
    func read() throws(StoreError) -> Saved

    /// Writes changes in one transaction: all of them, or none. When this returns, they outlast the process.
    ///
    /// - Throws: ``StoreError``; then nothing has been written.
    func write(_ changes: [Change]) throws(StoreError)

    /// Tries whether it can be written.
    ///
    /// - Throws: ``StoreError`` if not.
    func probe() throws(StoreError)

    /// Ends the use; nothing may be called after.
    func close()
}

/// The store could not be opened, read or written.
///
/// Match on `code`; print the error itself. The message says what was tried, what went wrong and what to try.
public struct StoreError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What kind of thing went wrong.
    public struct Code: Hashable, Sendable {
        private let name: String

        /// The file, or its folder, cannot be reached or made.
        public static let notReachable = Code(name: "notReachable")
        /// Another exchange has the database.
        public static let inUse = Code(name: "inUse")
        /// The file, or the disk, may not be written.
        public static let readOnly = Code(name: "readOnly")
        /// The disk is full.
        public static let full = Code(name: "full")
        /// The file is damaged, or no database of an exchange.
        public static let corrupt = Code(name: "corrupt")
        /// The file was deleted, moved or replaced while it was open.
        public static let gone = Code(name: "gone")
        /// A newer version has made the database.
        public static let newer = Code(name: "newer")
        /// The system said something else.
        public static let failed = Code(name: "failed")
    }

    /// What kind of thing went wrong.
    public let code: Code
    /// What was tried, what went wrong, and what to try.
    public let description: String

    /// Makes an error with the store's own description.
    package init(_ code: Code, _ description: String) {
        self.code = code
        self.description = description
    }

    /// What to try if the database's file or folder cannot be written to.
    public static let writingAdvice =
        "The folder must exist. Mount the disk for writing, and give the user that runs the exchange the right to write "
        + "the file and its folder."

    /// The database was closed before it could be written.
    public init(stopped path: String) {
        self.init(.failed, "cannot write the database \(path): the exchange is shutting down.")
    }
}
