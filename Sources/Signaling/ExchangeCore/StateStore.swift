/// Where an exchange keeps what outlasts its process, in the core's own terms.
///
/// One process at a time owns what is kept; a store that serves several processes gives each the users that it owns and
/// nobody else's. Calls wait for the disk or the network: not for an event loop. Any thread may call; one at a time is
/// served.
public protocol StateStore: Sendable {
    /// Where it is, for people.
    var path: String { get }

    /// What is kept, for the core to go on with.
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
