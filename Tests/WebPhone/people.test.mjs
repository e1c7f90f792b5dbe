import assert from 'node:assert/strict';
import test, { beforeEach } from 'node:test';
import { install } from './dom.mjs';
import { page } from './page.mjs';

const { People } = await page('people.js');

let people, called;
const find = (id) => document.getElementById(id);
const row = (name) => find('people-list').querySelector(`li[data-user="${name}"]`);
const button = (name) => row(name).querySelector('button');
const rows = () => find('people-list').children.map((child) => child.getAttribute('data-user'));
const recent = () => find('recent-list').querySelectorAll('li button');
const recentCall = (name, text, isMissed = false) => ({ name, label: name, canCall: true, text, isMissed });
const person = (user, reachable, ids = []) => ({ user, reachable, public_ids: ids });
const dial = (to) => {
  find('dial-to').value = to;
  find('dial').dispatchEvent(new Event('submit', { cancelable: true }));
};

beforeEach(() => {
  install({
    people: { dial: { 'dial-to': {}, 'dial-go': {} }, 'people-title': {}, 'people-list': {}, 'people-none': {}, recent: { 'recent-list': {} } },
  });
  people = new People();
  called = [];
  people.addEventListener('call', ({ detail }) => called.push(detail));
});

test('Those who are there come first, and then by name', () => {
  people.show([person('zoe', false), person('bob', true), person('anna', false), person('carl', true)]);
  assert.deepEqual(rows(), ['bob', 'carl', 'anna', 'zoe']);
  assert.ok(button('bob').textContent.includes('Online'));
  assert.ok(button('zoe').textContent.includes('Offline'));
  assert.equal(find('people-none').hidden, true);
});

test('A click calls who is there, and nobody else', () => {
  people.show([person('bob', true), person('zoe', false)]);
  button('bob').click();
  button('zoe').click();
  assert.deepEqual(called, ['bob']);
});

test('Without a connection nobody is said to be online, and nobody can be called', () => {
  people.show([person('bob', true), person('zoe', false)]);
  people.allow({ isBusy: false, isOnline: false });
  assert.equal(row('bob').getAttribute('data-there'), 'unknown');
  assert.ok(!find('people-list').textContent.includes('Online'));
  assert.ok(!button('bob').getAttribute('aria-label').includes('online'));
  button('bob').click();
  dial('bob');
  assert.deepEqual(called, []);
  people.allow({ isBusy: false, isOnline: true });
  assert.ok(button('bob').textContent.includes('Online'));
});

test('While there is a call no other can begin', () => {
  people.show([person('bob', true)]);
  people.remember(recentCall('carl', 'You called'));
  people.allow({ isBusy: true, isOnline: true });
  button('bob').click();
  recent()[0].click();
  dial('bob');
  assert.deepEqual(called, []);
  assert.equal(find('dial-go').disabled, true);
});

test('The keyboard’s focus stays on a person who comes, goes, or cannot be called', () => {
  people.show([person('bob', true), person('o"hara', true)]);
  for (const name of ['bob', 'o"hara']) {
    find('people-list').querySelectorAll('li').find((li) => li.getAttribute('data-user') === name).querySelector('button').focus();
    people.change(person('bob', false));
    people.allow({ isBusy: true, isOnline: true });
    people.allow({ isBusy: false, isOnline: false });
    assert.equal(document.activeElement.closest('li[data-user]')?.getAttribute('data-user'), name);
    people.allow({ isBusy: false, isOnline: true });
  }
});

test('A recent call from outside is shown as one, and called again by its number alone', () => {
  people.remember({ name: '+4930', label: 'Telephone +4930', canCall: true, text: 'Missed', isMissed: true });
  people.remember({ name: 'bob@evil', label: 'Telephone bob@evil', canCall: false, text: 'Missed', isMissed: true });
  const [stranger, number] = recent();
  assert.equal(stranger.querySelector('strong').textContent, 'Telephone bob@evil');
  assert.ok(stranger.getAttribute('aria-label').startsWith('Telephone bob@evil: Missed'));
  assert.equal(stranger.getAttribute('aria-disabled'), 'true');
  stranger.click();
  assert.deepEqual(called, []);
  assert.equal(number.querySelector('strong').textContent, 'Telephone +4930');
  number.click();
  assert.deepEqual(called, ['+4930']);
});

test('The keyboard’s focus stays on a recent call, though another comes before it', () => {
  people.remember(recentCall('bob', 'Missed', true));
  recent()[0].focus();
  people.remember(recentCall('carl', 'You called'));
  people.change(person('zoe', true));
  assert.equal(document.activeElement, recent()[1]);
  assert.ok(document.activeElement.textContent.includes('bob'));
});

test('After a call the focus is on who it was with, or else on the field for a name', () => {
  people.show([person('bob', true)]);
  people.focus('bob');
  assert.equal(document.activeElement, button('bob'));
  people.focus('nobody');
  assert.equal(document.activeElement, find('dial-to'));
  globalThis.matchMedia = () => ({ matches: false });
  people.focus('nobody');
  assert.equal(document.activeElement, find('people-title'), 'on a telephone the field would open a keyboard');
});

test('The last eight calls are kept, newest first, and forgotten when the user signs out', () => {
  for (let number = 1; number <= 10; number += 1) people.remember(recentCall(`n${number}`, '', number === 10));
  assert.deepEqual(recent().map((found) => found.querySelector('strong').textContent), ['n10', 'n9', 'n8', 'n7', 'n6', 'n5', 'n4', 'n3']);
  assert.equal(find('recent').hidden, false);
  people.forget();
  assert.equal(find('recent').hidden, true);
  assert.deepEqual(rows(), []);
});

test('A name that is typed is called without the blanks around it', () => {
  dial('  bob ');
  dial('   ');
  assert.deepEqual(called, ['bob']);
});

test('An exchange that tells nobody who is there says so, and so does one without others', () => {
  people.show(null);
  assert.ok(find('people-none').textContent.includes('Presence is switched off'));
  people.change(person('bob', true));
  assert.deepEqual(rows(), []);
  people.show([]);
  assert.ok(find('people-none').textContent.includes('Nobody else'));
});
