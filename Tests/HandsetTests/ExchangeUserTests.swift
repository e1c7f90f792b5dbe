import Testing

@testable import handset

@Suite("Who runs an exchange")
struct ExchangeUserTests {
    private let table = """
          sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
           0: 0100007F:216B 00000000:0000 01 00000000:00000000 00:00000000 00000000  1000        0 1 1 0000000000000000 100 0 0 10 0
           1: 0100007F:216B 00000000:0000 0A 00000000:00000000 00:00000000 00000000   998        0 2 1 0000000000000000 100 0 0 10 0
           2: 00000000000000000000000001000000:1F90 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 3 1
        """

    @Test("It is the one who listens at the port, not one who is connected through it")
    func listener() {
        #expect(ExchangeUser.listener(at: 0x216B, in: table) == 998)
        #expect(ExchangeUser.listener(at: 8080, in: table) == 0)
        #expect(ExchangeUser.listener(at: 8081, in: table) == nil)
        #expect(ExchangeUser.listener(at: 0x216B, in: "") == nil)
    }
}
