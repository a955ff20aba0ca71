import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { Webhook } from 'standardwebhooks';
import { verifyWebhook, WebhookVerificationError } from '../../../docs/examples/verify-webhook.mjs';
import { signatureHeaders } from '../../../domain/webhooks/sign-webhook.ts';

/** Of the tests of the reference libraries. */
const PUBLISHED = {
  secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
  id: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
  at: new Date(1_614_265_330_000),
  body: '{"test": 2432232314}',
  signature: 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
};

const keyOf = (secret: string) => Buffer.from(secret.slice('whsec_'.length), 'base64');
const newSecret = (bytes = 32) => `whsec_${randomBytes(bytes).toString('base64')}`;

describe('The signature of a webhook', () => {
  it('is that of the published example', () => {
    const { secret, id, at, body, signature } = PUBLISHED;
    expect(signatureHeaders(id, body, [keyOf(secret)], at)).to.deep.equal({
      'webhook-id': id,
      'webhook-timestamp': '1614265330',
      'webhook-signature': signature,
    });
    expect(new Webhook(secret).sign(id, at, body)).to.equal(signature);
    expect(
      verifyWebhook({ ...signatureHeaders(id, body, [keyOf(secret)], at) }, body, secret, { now: at }),
    ).to.equal(id);
  });

  it('is what the reference library makes, for secrets of each length and bodies of each kind', () => {
    for (let bytes = 24; bytes <= 64; bytes++) {
      const secret = newSecret(bytes);
      for (const body of ['', '{}', '{"name":"Zoë 😀 \\ud800"}', 'a.b.c']) {
        const now = new Date();
        const headers = signatureHeaders('delivery', body, [keyOf(secret)], now);
        expect(headers['webhook-signature']).to.equal(new Webhook(secret).sign('delivery', now, body));
        expect(verifyWebhook(headers, Buffer.from(body), secret)).to.equal('delivery');
      }
    }
  });

  it('is absent altogether without a key', () => {
    expect(signatureHeaders('delivery', '{}', [], new Date())).to.deep.equal({});
  });
});

describe('verifyWebhook of the examples', () => {
  const [present, former, other] = [newSecret(), newSecret(), newSecret()];
  const now = new Date('2026-03-01T12:00:00.700Z');
  const body = '{"session":"s1"}';
  const headers = signatureHeaders('delivery', body, [keyOf(present), keyOf(former)], now);

  it('takes either secret, either kind of headers, and a list of secrets', () => {
    expect(verifyWebhook(headers, body, present, { now })).to.equal('delivery');
    expect(verifyWebhook(headers, body, [other, former], { now })).to.equal('delivery');
    expect(verifyWebhook(new Headers(headers), Buffer.from(body), [present], { now })).to.equal('delivery');
    const more = { ...headers, 'webhook-signature': `v1a,xyz v2,abc ${headers['webhook-signature']}` };
    expect(verifyWebhook(more, body, former, { now }), 'signatures of other kinds').to.equal('delivery');
  });

  const signature = headers['webhook-signature'] ?? '';
  const [first = ''] = signature.split(' ');
  const changed: Record<string, readonly [object, string]> = {
    'another body': [headers, '{"session":"s2"}'],
    'a body that was formatted anew': [headers, '{ "session": "s1" }'],
    'another id': [{ ...headers, 'webhook-id': 'delivery2' }, body],
    'another time': [{ ...headers, 'webhook-timestamp': String(Math.floor(now.getTime() / 1000) + 1) }, body],
    'a time written in another way': [
      { ...headers, 'webhook-timestamp': `0${headers['webhook-timestamp']}` },
      body,
    ],
    'a dot that moved from the id to the body': [{ ...headers, 'webhook-id': 'deli.very' }, body],
    'a signature without its version': [{ ...headers, 'webhook-signature': first.slice(3) }, body],
    'a signature of another version': [
      { ...headers, 'webhook-signature': first.replace('v1,', 'v2,') },
      body,
    ],
    'a part of a signature': [{ ...headers, 'webhook-signature': first.slice(0, -8) }, body],
    'no signature': [{ ...headers, 'webhook-signature': '' }, body],
    'no headers': [{}, body],
    'a header that came twice': [{ ...headers, 'webhook-id': ['delivery', 'delivery'] }, body],
    'a time that is none': [{ ...headers, 'webhook-timestamp': '1e9' }, body],
  };
  for (const [name, [of, text]] of Object.entries(changed)) {
    it(`refuses ${name}`, () => {
      expect(() => verifyWebhook(of as Record<string, string>, text, [present, former], { now })).to.throw(
        WebhookVerificationError,
      );
    });
  }

  it('refuses what another secret signed', () => {
    expect(() => verifyWebhook(headers, body, other, { now })).to.throw(
      WebhookVerificationError,
      'no signature',
    );
    expect(() => verifyWebhook(headers, body, [], { now })).to.throw(
      WebhookVerificationError,
      'no signature',
    );
  });

  it('refuses a call that is older than the tolerance, or from the future', () => {
    const at = (seconds: number) => ({ now: new Date(now.getTime() + seconds * 1000) });
    for (const seconds of [-299, 299])
      expect(verifyWebhook(headers, body, present, at(seconds))).to.equal('delivery');
    for (const seconds of [-302, 302]) {
      expect(() => verifyWebhook(headers, body, present, at(seconds))).to.throw(
        WebhookVerificationError,
        'too long',
      );
    }
    const strict = { ...at(10), toleranceSeconds: 5 };
    expect(() => verifyWebhook(headers, body, present, strict)).to.throw(
      WebhookVerificationError,
      'too long',
    );
    const broken = { now, toleranceSeconds: Number.NaN };
    expect(() => verifyWebhook(headers, body, present, broken)).to.throw(
      WebhookVerificationError,
      'too long',
    );
  });

  it('does not take something for a secret that is none', () => {
    for (const bad of [
      '',
      'whsec_',
      'whsec_short',
      newSecret(23),
      newSecret(65),
      'not base64 at all, but long enough',
    ]) {
      expect(() => verifyWebhook(headers, body, [present, bad], { now }), bad).to.throw(TypeError);
    }
    expect(() => verifyWebhook(headers, body, undefined as unknown as string, { now })).to.throw(TypeError);
  });
});
