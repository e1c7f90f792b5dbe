extension EndRequest {
    /// Connects something, and shuts it down if the process is asked to end meanwhile: a server that does not answer
    /// delays no end.
    ///
    /// - Parameters:
    ///   - connect: Ends early when `shutDown` is called.
    ///   - shutDown: May be called more than once.
    /// - Returns: Whether it is connected. If the process was asked to end, also at the instant at which `connect`
    ///   returns or throws, it is shut down.
    /// - Throws: What `connect` throws, unless the process was asked to end.
    func connect<Failure: Error>(
        _ connect: @escaping @Sendable () async throws(Failure) -> Void,
        shutDown: @escaping @Sendable () async -> Void
    ) async throws(Failure) -> Bool {
        let connecting = Task { () -> Failure? in
            do throws(Failure) {
                try await connect()
                return nil
            } catch {
                return error
            }
        }
        let watching = Task {
            await wait()
            if !Task.isCancelled { await shutDown() }
        }
        let failure = await connecting.value
        watching.cancel()
        if isMade {
            await watching.value
            // The task may have been cancelled at the instant at which it woke, and has then shut nothing down.
            await shutDown()
            return false
        }
        if let failure { throw failure }
        return true
    }
}
