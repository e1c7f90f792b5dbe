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
