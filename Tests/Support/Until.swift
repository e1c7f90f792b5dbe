/// Waits until `isThere` says yes, and throws when the test's time limit cancels it: what never comes fails its own test and
/// does not hold up the others.
public func until(_ isThere: () async throws -> Bool) async throws {
    while try await !isThere() { try await Task.sleep(for: .milliseconds(1)) }
}
