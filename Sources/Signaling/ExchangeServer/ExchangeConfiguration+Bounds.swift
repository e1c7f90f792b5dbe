import ConfigReader
import HTTPTransport
import Realtime

/// Judging where to listen, as the server does when it begins to.
extension ExchangeConfiguration {
    func judgeListening(_ section: KeyedSection<Keys>, _ problems: inout [ConfigProblem]) {
        // An unreadable certificate is reported elsewhere; the intent to use TLS is clear.
        let isEncrypted = self.isEncrypted || section.has(\.certificate)
        do throws(ExchangeError) {
            switch section.fileChecks {
            case .inputs: break  // A caller that reads a part of the configuration does not listen.
            case .none:
                // Another machine has other names; an address is the same everywhere.
                guard let address = listenAddress.literal else { return }
                try refusePlainText(at: address, isEncrypted: isEncrypted)
            case .all:
                let address = try resolveListenAddress(isEncrypted: isEncrypted)
                do throws(ListenError) { try listenAddress.tryToBind(address) } catch { throw ExchangeError(error) }
            }
        } catch {
            problems.append(section.problem(\.listen, "\(error)"))
        }
    }
}

/// Reading who may come to an exchange, and how many.
extension ExchangeConfiguration {
    mutating func readBounds(_ section: KeyedSection<Keys>, _ problems: inout [ConfigProblem]) {
        connections = section.value(\.connections, &problems)
        connectionsPerAddress = section.value(\.connectionsPerAddress, &problems)
        connectionsFromThisMachine = section.value(\.connectionsFromThisMachine, &problems)
        loginMemoryBytes = section.value(\.loginMemory, &problems).map { $0 << 20 }
        keptMemoryBytes = section.value(\.keptMemory, &problems).map { $0 << 20 }
        allowedHosts = section.value(\.allowedHosts, &problems) ?? []
    }

    /// What clients without a login may take up together.
    var loginShare: Int { loginMemoryBytes ?? MemoryShares.logins(MachineMemory.limitBytes) }

    /// How memory is shared out.
    var memoryShares: MemoryShares {
        keptMemoryBytes.map { MemoryShares(kept: $0) } ?? .fitting(MachineMemory.limitBytes)
    }
}
