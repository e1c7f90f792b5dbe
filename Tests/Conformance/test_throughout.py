"""Checks of all that was sent and logged while every other test ran. These come last."""

import client


async def test_no_secret_anywhere(stage):
    """AUTH-12: No token, password or key that was used is in any exchange's log, at level debug, or in any error"""
    secrets = {secret for secret in client.known_secrets if len(secret) > 10}
    assert not secrets & {None, ""}
    for task in stage.running.values():
        exchange = await task
        log = exchange.log.read_text()
        assert "Listening" in log
        assert not [secret for secret in secrets if secret in log], f"a secret is in the log of {exchange.name}"
    for message in client.complaints:
        assert not any(secret in message for secret in secrets), message


async def test_nothing_was_broken_in_passing(stage):
    """CONN-5, CONN-3: Over all tests numbers only rose, each request had one answer, and each error was one of the page"""
    assert not client.violations, client.violations[:10]
