import NIOCore
import NIOPosix
import Synchronization
import Testing

@testable import HTTPTransport

@Suite struct LoopDoorTests {
    @Test("What another thread brings runs on the event loop until the door is closed, and is dropped after")
    func closing() async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let loop = group.next()
        let door = LoopDoor(to: loop)
        let ran = Mutex<[String]>([])
        door.execute { ran.withLock { $0.append(loop.inEventLoop ? "before" : "elsewhere") } }
        door.close()
        door.execute { ran.withLock { $0.append("after") } }
        try await loop.submit {}.get()
        #expect(ran.withLock { $0 } == ["before"])
        // An event loop that has ended writes of work that it is given.
        try await group.shutdownGracefully()
        door.execute { ran.withLock { $0.append("after the end") } }
        #expect(ran.withLock { $0 } == ["before"])
    }

    private final class Shutting: Sendable {
        let isOver = Atomic(false)
        let late = Atomic(0)

        func note() { if isOver.load(ordering: .acquiring) { late.add(1, ordering: .relaxed) } }
    }

    @Test(
        "A door that is closed beside threads that bring work lets nothing through to an event loop that has ended",
        arguments: 0..<50)
    func race(round: Int) async {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let (door, shutting) = (LoopDoor(to: group.next()), Shutting())
        await withTaskGroup(of: Void.self) { tasks in
            for _ in 0..<4 { tasks.addTask { for _ in 0..<200 { door.execute { shutting.note() } } } }
            tasks.addTask {
                door.close()
                try? await group.shutdownGracefully()
                shutting.isOver.store(true, ordering: .releasing)
            }
        }
        #expect(shutting.late.load(ordering: .relaxed) == 0)
    }
}
