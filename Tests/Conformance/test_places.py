"""INV-12: how many invites a user may have open, so that no user keeps others from calling one."""

from client import Refused, refusal
from exchange import call, invite


async def flood(attacker, victim):
    """Sends invites that never end until one is refused, and leaves. Returns the number that was accepted."""
    taken = 0
    while True:
        try:
            await invite(attacker, victim, ttl=0)
        except Refused as refused:
            assert refused.name == "tooManyRequests", refused
            await attacker.leave()
            return taken
        taken += 1


async def test_one_attacker_blocks_nobody(exchange):
    """INV-12: One account sends until it is refused and leaves; an honest caller gets through"""
    attacker, honest, victim = await exchange.party(1, 1, 1)
    assert await flood(attacker, victim) == 8
    number = await invite(honest, victim)
    await victim.hear("inviteReceived", invite=number)
    await victim.ask("invite.accept", invite=number)
    await honest.hear("inviteAccepted", invite=number)


async def test_eight_attackers_block_no_stranger(exchange):
    """INV-12: Eight accounts fill the strangers' share and leave; strangers get through, and the oldest invites time out"""
    watcher, honest, victim, *attackers = await exchange.party(*[1] * 10)
    oldest = await invite(watcher, victim, ttl=0)
    for _ in range(7):
        await invite(watcher, victim, ttl=0)
    assert [await flood(attacker, victim) for attacker in attackers] == [8] * 7
    number = await invite(honest, victim, ttl=0)
    await watcher.hear("inviteTimedOut", invite=oldest)
    await victim.hear("inviteTimedOut", invite=oldest)
    await victim.hear("inviteReceived", invite=number)
    await victim.ask("invite.accept", invite=number)
    await honest.hear("inviteAccepted", invite=number)


async def test_sixty_four_attackers_block_no_friend(exchange):
    """INV-12: 64 accounts fill the strangers' share and leave; an earlier caller, and a user who is called back, get through"""
    friend, called, victim, *attackers = await exchange.party(*[1] * 67)
    await call(friend, victim)
    for attacker in attackers:
        await flood(attacker, victim)
    await victim.hear("inviteReceived", invite=await invite(friend, victim))
    refused = await refusal(invite(called, victim), "tooManyRequests")
    assert not any(attacker.user in str(refused) for attacker in attackers), refused
    await invite(victim, called)
    await victim.hear("inviteReceived", invite=await invite(called, victim))
