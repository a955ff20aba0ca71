import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { verifyWebhook as verifyByExample } from '../../../docs/examples/verify-webhook.mjs';
import { signatureHeaders } from '../../../domain/webhooks/sign-webhook.ts';
import { verifyWebhook } from '../src/index.ts';

const keyOf = (secret: string) => Buffer.from(secret.slice('whsec_'.length), 'base64');
const newSecret = (bytes = 32) => `whsec_${randomBytes(bytes).toString('base64')}`;

const nameOf = async (promise: Promise<unknown>) =>
  promise.then(
    () => 'accepted',
    (error: Error) => error.name,
  );

describe('verifyWebhook of the client', () => {
  const [present, former, other] = [newSecret(), newSecret(), newSecret()];
  const now = new Date('2026-03-01T12:00:00.700Z');
  const body = '{"session":"s1","name":"Zoë 😀"}';
  const signed = (text: string) => signatureHeaders('delivery', text, [keyOf(present), keyOf(former)], now);
  const headers = signed(body) as Readonly<Record<string, string>>;
  const signature = headers['webhook-signature'] ?? '';
  const [first = ''] = signature.split(' ');
  const timestamp = headers['webhook-timestamp'] ?? '';

  it('returns body, id and time, for every kind of headers, bodies and secrets', async () => {
    const shouted = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toUpperCase(), value]));
    for (const [of, raw, secrets] of [
      [headers, body, present],
      [new Headers(headers), Buffer.from(body), [former]],
      [shouted, new TextEncoder().encode(body), [other, present]],
      [{ ...headers, 'webhook-signature': `v1a,xyz v2,abc v1,no ${signature}` }, body, former],
    ] as const) {
      const delivery = await verifyWebhook<'claims'>(of, raw, secrets, { now });
      expect(delivery.id).to.equal('delivery');
      expect(delivery.sentAt.toISOString()).to.equal('2026-03-01T12:00:00.000Z');
      expect(delivery.body).to.deep.equal(JSON.parse(body));
    }
  });

  const refused: Record<string, readonly [object, string]> = {
    'another body': [headers, body.replace('s1', 's2')],
    'a body that was formatted anew': [headers, JSON.stringify(JSON.parse(body), undefined, 2)],
    'another id': [{ ...headers, 'webhook-id': 'delivery2' }, body],
    'another time': [{ ...headers, 'webhook-timestamp': String(Number(timestamp) + 1) }, body],
    'a time in another notation': [{ ...headers, 'webhook-timestamp': `0${timestamp}` }, body],
    'a time that is none': [{ ...headers, 'webhook-timestamp': '1e9' }, body],
    'a dot that moved from the id to the body': [{ ...headers, 'webhook-id': 'deli.very' }, body],
    'a signature without its version': [{ ...headers, 'webhook-signature': first.slice(3) }, body],
    'a signature of another version': [{ ...headers, 'webhook-signature': first.replace('v1,', 'v2,') }, body],
    'a part of a signature': [{ ...headers, 'webhook-signature': first.slice(0, -8) }, body],
    'no signature': [{ ...headers, 'webhook-signature': '' }, body],
    'no headers': [{}, body],
    'a header that came twice': [{ ...headers, 'webhook-id': ['delivery', 'delivery'] }, body],
  };
  for (const [name, [of, text]] of Object.entries(refused)) {
    it(`refuses ${name}, as the example does`, async () => {
      const given = of as Record<string, string>;
      const secrets = [present, former];
      expect(await nameOf(verifyWebhook(given, text, secrets, { now }))).to.equal('WebhookVerificationError');
      expect(() => verifyByExample(given, text, secrets, { now })).to.throw();
    });
  }

  it('refuses what other secrets signed, what is too old, and what is no JSON', async () => {
    const at = (seconds: number) => ({ now: new Date(now.getTime() + seconds * 1000) });
    const verdict = (secrets: string[], options: object, text = body) => nameOf(verifyWebhook(signed(text), text, secrets, options));
    for (const seconds of [-299, 299]) expect(await verdict([present], at(seconds))).to.equal('accepted');
    for (const verdicts of [
      verdict([other], { now }),
      verdict([], { now }),
      verdict([present], at(302)),
      verdict([present], at(-302)),
      verdict([present], { ...at(10), toleranceSeconds: 5 }),
      verdict([present], { now, toleranceSeconds: Number.NaN }),
      verdict([present], { now }, '{"a":'),
    ])
      expect(await verdicts).to.equal('WebhookVerificationError');
  });

  it('verifies no more signatures than the service sends', async () => {
    const many = { ...headers, 'webhook-signature': Array(9).fill(first).join(' ') };
    expect(await nameOf(verifyWebhook(many, body, present, { now }))).to.equal('WebhookVerificationError');
  });

  it('rejects an invalid secret', async () => {
    const bad = ['', 'whsec_', 'whsec_short', newSecret(23), newSecret(65), 'no base64, but long enough for one'];
    for (const secret of bad) {
      expect(await nameOf(verifyWebhook(headers, body, [present, secret], { now })), secret).to.equal('TypeError');
    }
    const missing = undefined as unknown as string;
    const parsed = {} as unknown as string;
    expect(await nameOf(verifyWebhook(headers, parsed, present, { now }))).to.equal('TypeError');
    expect(await nameOf(verifyWebhook(headers, body, missing, { now }))).to.equal('TypeError');
  });
});
