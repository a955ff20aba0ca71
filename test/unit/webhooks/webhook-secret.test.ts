import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import {
  formerSigning,
  rotateWebhookSecret,
  signingKeys,
  switchWebhookSigning,
  UNTOLD,
  type WebhookSecret,
  WebhookSecretRotation,
  writeSecret,
} from '../../../domain/webhooks/webhook-secret.ts';

const NOW = new Date('2026-03-01T12:00:00Z');
const past = (seconds: number) => new Date(NOW.getTime() + seconds * 1000);
const bytes = (fill: number) => Buffer.alloc(32, fill);
const UNKNOWN = randomBytes(32);
const rotate = (before: WebhookSecret | undefined, fill: number, at: Date, overlapSeconds?: number) =>
  rotateWebhookSecret(before, writeSecret(bytes(fill)), { overlapSeconds }, at);
/** By what they are filled with. */
const signing = (secret: WebhookSecret, at: Date) =>
  signingKeys(secret, at, () => UNKNOWN).map((key) => Buffer.from(key).at(0));

describe('The secret of webhooks', () => {
  it('is one that nobody knows, until one is made', () => {
    expect(signingKeys(UNTOLD, NOW, () => UNKNOWN)).to.deep.equal([UNKNOWN]);
    const first = rotate(undefined, 1, NOW);
    expect(signing(first, NOW), 'what nobody knew need not go on').to.deep.equal([1]);
    expect(first).to.deep.include({
      id: 'default',
      signing: 'v1',
      former: [],
      createdAt: NOW,
      updatedAt: NOW,
    });
  });

  it('is written as backends take it', () => {
    expect(writeSecret(bytes(7))).to.equal(`whsec_${bytes(7).toString('base64')}`);
  });

  it('signs beside the next one until the overlap ends: a day, unless stated', () => {
    const second = rotate(rotate(undefined, 1, NOW), 2, NOW);
    expect(signing(second, past(86_399))).to.deep.equal([2, 1]);
    expect(signing(second, past(86_400))).to.deep.equal([2]);
    const short = rotate(rotate(undefined, 1, NOW), 2, NOW, 60);
    expect([signing(short, past(59)), signing(short, past(60))]).to.deep.equal([[2, 1], [2]]);
    expect(formerSigning(short, past(59)).map(({ signsUntil }) => signsUntil)).to.deep.equal([past(60)]);
    expect(formerSigning(short, past(60))).to.deep.equal([]);
  });

  it('signs no more at once without an overlap, nor does any former one', () => {
    const third = rotate(rotate(rotate(undefined, 1, NOW), 2, NOW), 3, past(1), 0);
    expect(signing(third, past(1))).to.deep.equal([3]);
  });

  it('keeps the end of its own overlap through further rotations', () => {
    const third = rotate(rotate(rotate(undefined, 1, NOW), 2, NOW, 100), 3, past(10), 20);
    expect(signing(third, past(10))).to.deep.equal([3, 2, 1]);
    expect(signing(third, past(30))).to.deep.equal([3, 1]);
    expect(signing(third, past(100))).to.deep.equal([3]);
  });

  it('is forgotten when it has ended, and when there are three newer former ones', () => {
    let secret = rotate(undefined, 0, NOW);
    for (let fill = 1; fill <= 6; fill++) secret = rotate(secret, fill, past(fill));
    expect(signing(secret, past(6))).to.deep.equal([6, 5, 4, 3]);
    expect(JSON.stringify(secret)).to.not.include(bytes(2).toString('base64'));
    const later = rotate(secret, 7, past(90_000));
    expect(signing(later, past(90_000)), 'those before ended').to.deep.equal([7, 6]);
  });

  it('signs nothing while signing is off, and as before afterwards', () => {
    const second = rotate(rotate(undefined, 1, NOW), 2, NOW);
    const off = switchWebhookSigning(second, { signing: 'off' }, past(1));
    expect(signing(off, past(1))).to.deep.equal([]);
    expect(signing(rotate(off, 3, past(2)), past(2)), 'a rotation does not switch it on').to.deep.equal([]);
    expect(signing(switchWebhookSigning(off, { signing: 'v1' }, past(3)), past(3))).to.deep.equal([2, 1]);
    const untold = switchWebhookSigning(undefined, { signing: 'off' }, NOW);
    expect(signing(untold, NOW)).to.deep.equal([]);
    const on = switchWebhookSigning(untold, { signing: 'v1' }, NOW);
    expect(signingKeys(on, NOW, () => UNKNOWN)).to.deep.equal([UNKNOWN]);
  });

  it('overlaps for at most a week, in whole seconds', () => {
    for (const overlapSeconds of [0, 1, 604_800, null, undefined]) {
      expect(WebhookSecretRotation.safeParse({ overlapSeconds }).success, String(overlapSeconds)).to.equal(
        true,
      );
    }
    for (const overlapSeconds of [-1, 604_801, 1.5, '60', Number.POSITIVE_INFINITY]) {
      expect(WebhookSecretRotation.safeParse({ overlapSeconds }).success, String(overlapSeconds)).to.equal(
        false,
      );
    }
  });
});
