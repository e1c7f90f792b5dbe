// callers: places many calls to a device, and either hands their media to loadgen or measures how soon it flows.

import Glibc

do {
    let options = try Options(CommandLine.arguments.dropFirst())
    let caller = Caller(service: try options.service(), callee: options.callee)
    try await caller.connect()
    switch options.task {
    case .hold(let calls): try await hold(calls, options.suite, caller)
    case .offer(let calls): try await offer(calls, options.suite, caller)
    case .setUp(let calls): print(try await measureSetUp(calls, options.suite, caller).json)
    }
    await caller.disconnect()
} catch {
    let message = Array("callers: \(error)\n".utf8)
    _ = write(STDERR_FILENO, message, message.count)
    exit(error is UsageError ? 2 : 1)
}
