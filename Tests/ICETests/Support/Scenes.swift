import ICE
import Core
import TestSupport

/// Worlds that many tests begin with.
enum Scenes {
    static let server = address("203.0.113.5", 3_478)

    static func address(_ host: String, _ port: UInt16 = 5_000) -> SocketAddress {
        guard let address = SocketAddress(host: host, port: port) else { preconditionFailure("\(host) is no address") }
        return address
    }

    static func peer(
        _ number: Int, seed: UInt64, nat kind: SimulatedNAT.Kind? = nil, addresses: [SocketAddress]? = nil,
        _ change: (inout ICEConfiguration) -> Void = { _ in }
    ) -> SimulatedPeer {
        var generator = SeededGenerator(seed: seed &* 2 &+ UInt64(number))
        var configuration = ICEConfiguration(isControlling: number == 0)
        change(&configuration)
        let credentials = ICECredentials(using: &generator)
        let agent = ICEAgent(configuration, credentials: credentials, generator: generator)
        let nat = kind.map { SimulatedNAT($0, host: "198.51.100.\(number + 1)") }
        let own = address(nat == nil ? "192.0.2.\(number + 1)" : "10.0.\(number).2")
        return SimulatedPeer(agent, addresses: addresses ?? [own], nat: nat)
    }

    static func servers(_ transport: ICEServer.Transport = .udp, password: String = "secret") -> [ICEServer] {
        [
            ICEServer(.stun, at: server),
            ICEServer(.turn(transport, username: "user", password: password), at: server),
        ]
    }

    /// Two peers behind NATs with a server for both.
    static func natWorld(
        _ first: SimulatedNAT.Kind?, _ second: SimulatedNAT.Kind?, seed: UInt64,
        weather: World.Weather = World.Weather(), _ change: (inout ICEConfiguration) -> Void = { _ in }
    ) -> World {
        let peers = [first, second].enumerated().map { number, kind in
            peer(number, seed: seed, nat: kind) {
                $0.servers = servers()
                change(&$0)
            }
        }
        return World(seed: seed, weather: weather, peers, servers: [SimulatedServer(server)])
    }

    /// Two peers with public addresses and no server.
    static func plainWorld(
        seed: UInt64 = 1, weather: World.Weather = World.Weather(),
        _ change: (inout ICEConfiguration) -> Void = { _ in }
    ) -> World {
        World(seed: seed, weather: weather, (0..<2).map { peer($0, seed: seed, change) })
    }
}

extension World {
    /// Both sides have settled on a path.
    var isSettled: Bool { peers.allSatisfy(\.isSettled) }

    /// Both sides keep sending until each has heard the other. Says whether they have, in time.
    func exchange(within limit: Duration = .seconds(3)) -> Bool {
        let marks = peers.indices.map { index in
            [0x16, UInt8(index), UInt8.random(in: 0...255, using: &random), UInt8.random(in: 0...255, using: &random)]
        }
        let end = now.advanced(by: limit)
        while now < end {
            for index in peers.indices { send(index, marks[index]) }
            run(for: .milliseconds(100))
            if peers.indices.allSatisfy({ peers[$0].inbox.contains(marks[1 - $0]) }) { return true }
        }
        return false
    }
}
