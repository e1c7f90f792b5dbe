public import SignalWire

/// Where an exchange keeps what outlasts its process, in the core's own terms.
///
/// One process at a time owns what is kept; a store that serves several processes gives each only the users that it
/// owns. Calls block on the disk or the network, so an event loop must not make them. Any thread may call; calls are
/// served one at a time.
public protocol StateStore: Sendable {
    /// Where it is, for people.
    var path: String { get }

    /// The lease by which this process owns it; `nil` where no other process can take it over.
    var lease: (any StoreLease)? { get }

    /// The stored state, from which the core continues.
    ///
    /// - Throws: ``StoreError``.
    func read() throws(StoreError) -> Saved

    /// Writes changes in one transaction: all of them, or none. When this returns, they outlast the process.
    ///
    /// - Throws: ``StoreError``; then nothing has been written, unless its code is ``StoreError/Code/unknown``.
    func write(_ changes: [Change]) throws(StoreError)

    /// Tries whether it can be written.
    ///
    /// - Throws: ``StoreError`` if not.
    func probe() throws(StoreError)

    /// Ends the use; nothing may be called after.
    func close()
}

extension StateStore {
    /// No other process can take it over.
    public var lease: (any StoreLease)? { nil }
}

/// A right to a store that ends unless it is confirmed: by each write, and by one without changes.
///
/// Another process may own the store once it has ended, so nothing may be answered from memory then.
public protocol StoreLease: Sendable {
    /// Whether it was confirmed a moment ago that no other process owns the store. Any thread may call; it takes less than
    /// a microsecond.
    var isHeld: Bool { get }

    /// Which ownership it is, as clients see it; `nil` before the first.
    var epoch: OwnerEpoch? { get }

    /// How often it is to be confirmed.
    var confirmationInterval: Duration { get }
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
        /// Another program has cut the file, or written to it, while it was open.
        public static let spoiled = Code(name: "spoiled")
        /// A newer version has made the database.
        public static let newer = Code(name: "newer")
        /// Another process has taken the store over.
        public static let fenced = Code(name: "fenced")
        /// The connection to the store ended before it answered, so that the changes may have been written or not.
        public static let unknown = Code(name: "unknown")
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

    /// Whether the changes may have been written, or another process decides about them now: who asked for them must not be answered.
    public var leavesDoubt: Bool { code == .unknown || code == .fenced }

    /// The database was closed before it could be written.
    public init(stopped path: String) {
        self.init(.failed, "cannot write the database \(path): the exchange is shutting down.")
    }
}
