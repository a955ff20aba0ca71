import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { Webhook } from 'standardwebhooks';
import type { TenantCaller } from '../../../application/caller.ts';
import { GetWebhookSecret, RotateWebhookSecret, UpdateWebhookSecret } from '../../../application/webhooks/webhook-secrets.ts';
import { verifyWebhook, WebhookVerificationError } from '../../../docs/examples/verify-webhook.mjs';
import { signatureHeaders } from '../../../domain/webhooks/sign-webhook.ts';
import { WebhookConfig } from '../../../domain/webhooks/webhook.ts';
import {
  activePreviousSecrets,
  INITIAL_WEBHOOK_SECRET,
  rotateWebhookSecret,
  signingKeys,
  switchWebhookSigning,
  type WebhookSecret,
  WebhookSecretRotation,
  writeSecret,
} from '../../../domain/webhooks/webhook-secret.ts';
import { type AdministrationWorld, anAdministration } from '../administrators.ts';

describe('webhook of a backend', () => {
  const isAccepted = (config: object, url = 'https://backend.example/hook') =>
    WebhookConfig.safeParse({ url, auth: { type: 'apiKey', config } }).success;
  const header = (headerName: string) => isAccepted({ headerName, value: 'secret' });
  const value = (text: string) => isAccepted({ headerName: 'x-key', value: text });

  it('has an API key in a header that is not reserved', () => {
    for (const name of ['Authorization', 'x-api-key', 'Contents', 'hook']) expect(header(name), name).to.equal(true);
  });

  for (const name of ['Host', 'Content-Length', 'content-type', 'webhook-id', 'Idempotency-Key', 'a b', 'a:', '']) {
    it(`rejects the header ${JSON.stringify(name)}`, () => expect(header(name)).to.equal(false));
  }

  it('has an API key of one visible line', () => {
    for (const text of ['Bearer abc', 'x', 'a\tb']) expect(value(text)).to.equal(true);
    for (const text of ['', ' x', 'x ', 'a\r\nb', 'ä']) expect(value(text)).to.equal(false);
  });

  it('has a web address', () => {
    const config = { headerName: 'x-key', value: 'secret' };
    expect(isAccepted(config, 'http://backend.example:8080/')).to.equal(true);
    for (const url of ['ftp://backend.example/', 'https://u:p@backend.example/', 'backend']) {
      expect(isAccepted(config, url)).to.equal(false);
    }
  });
});

const NOW = new Date('2026-03-01T12:00:00Z');
const secondsLater = (seconds: number) => new Date(NOW.getTime() + seconds * 1000);
const bytes = (fill: number) => Buffer.alloc(32, fill);
const RANDOM_KEY = randomBytes(32);
const rotate = (before: WebhookSecret | undefined, fill: number, optionsAt: Date, overlapSeconds?: number) =>
  rotateWebhookSecret(before, writeSecret(bytes(fill)), { overlapSeconds }, optionsAt);
/** Returns the fill bytes of the active keys. */
const activeKeys = (secret: WebhookSecret, optionsAt: Date) =>
  signingKeys(secret, optionsAt, () => RANDOM_KEY).map((key) => Buffer.from(key).at(0));

describe('webhook secret', () => {
  it('is undefined until it is created', () => {
    expect(signingKeys(INITIAL_WEBHOOK_SECRET, NOW, () => RANDOM_KEY)).to.deep.equal([RANDOM_KEY]);
    const first = rotate(undefined, 1, NOW);
    expect(activeKeys(first, NOW), 'an unused secret needs no overlap').to.deep.equal([1]);
    expect(first).to.deep.include({ id: 'default', signing: 'v1', former: [], createdAt: NOW, updatedAt: NOW });
  });

  it('is encoded in the format of Standard Webhooks', () => {
    expect(writeSecret(bytes(7))).to.equal(`whsec_${bytes(7).toString('base64')}`);
  });

  it('signs together with the next one until the overlap ends: a day by default', () => {
    const second = rotate(rotate(undefined, 1, NOW), 2, NOW);
    expect(activeKeys(second, secondsLater(86_399))).to.deep.equal([2, 1]);
    expect(activeKeys(second, secondsLater(86_400))).to.deep.equal([2]);
    const shortOverlap = rotate(rotate(undefined, 1, NOW), 2, NOW, 60);
    expect([activeKeys(shortOverlap, secondsLater(59)), activeKeys(shortOverlap, secondsLater(60))]).to.deep.equal([[2, 1], [2]]);
    expect(activePreviousSecrets(shortOverlap, secondsLater(59)).map(({ signsUntil }) => signsUntil)).to.deep.equal([secondsLater(60)]);
    expect(activePreviousSecrets(shortOverlap, secondsLater(60))).to.deep.equal([]);
  });

  it('stops signing at once without an overlap, like all former ones', () => {
    const third = rotate(rotate(rotate(undefined, 1, NOW), 2, NOW), 3, secondsLater(1), 0);
    expect(activeKeys(third, secondsLater(1))).to.deep.equal([3]);
  });

  it('keeps the end of its own overlap through further rotations', () => {
    const third = rotate(rotate(rotate(undefined, 1, NOW), 2, NOW, 100), 3, secondsLater(10), 20);
    expect(activeKeys(third, secondsLater(10))).to.deep.equal([3, 2, 1]);
    expect(activeKeys(third, secondsLater(30))).to.deep.equal([3, 1]);
    expect(activeKeys(third, secondsLater(100))).to.deep.equal([3]);
  });

  it('is deleted at the end of its overlap, and when there are three newer former ones', () => {
    let secret = rotate(undefined, 0, NOW);
    for (let fill = 1; fill <= 6; fill++) secret = rotate(secret, fill, secondsLater(fill));
    expect(activeKeys(secret, secondsLater(6))).to.deep.equal([6, 5, 4, 3]);
    expect(JSON.stringify(secret)).to.not.include(bytes(2).toString('base64'));
    const rotatedLater = rotate(secret, 7, secondsLater(90_000));
    expect(activeKeys(rotatedLater, secondsLater(90_000)), 'earlier secrets have expired').to.deep.equal([7, 6]);
  });

  it('signs nothing while signing is disabled, and with the same secret afterwards', () => {
    const second = rotate(rotate(undefined, 1, NOW), 2, NOW);
    const switchedOff = switchWebhookSigning(second, { signing: 'off' }, secondsLater(1));
    expect(activeKeys(switchedOff, secondsLater(1))).to.deep.equal([]);
    expect(activeKeys(rotate(switchedOff, 3, secondsLater(2)), secondsLater(2)), 'a rotation does not enable signing').to.deep.equal([]);
    expect(activeKeys(switchWebhookSigning(switchedOff, { signing: 'v1' }, secondsLater(3)), secondsLater(3))).to.deep.equal([2, 1]);
    const withoutNotice = switchWebhookSigning(undefined, { signing: 'off' }, NOW);
    expect(activeKeys(withoutNotice, NOW)).to.deep.equal([]);
    const switchedOn = switchWebhookSigning(withoutNotice, { signing: 'v1' }, NOW);
    expect(signingKeys(switchedOn, NOW, () => RANDOM_KEY)).to.deep.equal([RANDOM_KEY]);
  });

  it('overlaps for at most a week, in whole seconds', () => {
    for (const overlapSeconds of [0, 1, 604_800, null, undefined]) {
      expect(WebhookSecretRotation.safeParse({ overlapSeconds }).success, String(overlapSeconds)).to.equal(true);
    }
    for (const overlapSeconds of [-1, 604_801, 1.5, '60', Number.POSITIVE_INFINITY]) {
      expect(WebhookSecretRotation.safeParse({ overlapSeconds }).success, String(overlapSeconds)).to.equal(false);
    }
  });
});

describe('webhook secret through its use cases', () => {
  let world: AdministrationWorld;
  let caller: TenantCaller;
  const get = () => new GetWebhookSecret(world).execute(caller);
  const rotate = (options: { overlapSeconds?: number } = {}) => new RotateWebhookSecret(world).execute(caller, options);
  const update = (activeKeys: 'v1' | 'off') => new UpdateWebhookSecret(world).execute(caller, { signing: activeKeys });

  beforeEach(async () => {
    world = await anAdministration();
    caller = world.caller(['issuance:manage', 'presentation:manage']);
  });

  it('cannot be changed by a caller with only one role: it signs deliveries of issuance and verification', async () => {
    for (const role of ['issuance:manage', 'presentation:manage'] as const) {
      caller = world.caller([role]);
      for (const attempt of [rotate, () => update('off')]) {
        const error = await attempt().catch((error: unknown) => error);
        expect(error, role).to.include({ code: 'forbidden' });
      }
      expect((await get()).stored.signing).to.equal('v1');
    }
  });

  it('signs before it was returned for the first time', async () => {
    const { stored, signing: activeKeys } = await get();
    expect([stored.signing, stored.current, activeKeys]).to.deep.equal(['v1', undefined, []]);
  });

  it('is returned by its rotation, and signs together with the next one until the overlap ends', async () => {
    const first = await rotate();
    expect(first.secret).to.match(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect(first.signing, 'no other secret existed').to.deep.equal([]);
    const second = await rotate({ overlapSeconds: 60 });
    expect(second.secret).to.not.equal(first.secret);
    expect((await get()).signing.map(({ secret }) => secret)).to.deep.equal([first.secret]);
    world.clock.forward(61_000);
    expect((await get()).signing).to.deep.equal([]);
  });

  it('ends previous ones without an overlap', async () => {
    await rotate();
    await rotate();
    const { secret } = await rotate({ overlapSeconds: 0 });
    const { stored, signing: activeKeys } = await get();
    expect([stored.current?.secret, activeKeys]).to.deep.equal([secret, []]);
  });

  it('is kept when signing is switched off and on', async () => {
    const { secret } = await rotate();
    expect((await update('off')).stored.signing).to.equal('off');
    const { stored } = await update('v1');
    expect([stored.signing, stored.current?.secret]).to.deep.equal(['v1', secret]);
  });
});

/** A test vector of the reference libraries. */
const TEST_VECTOR = {
  secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
  id: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
  at: new Date(1_614_265_330_000),
  body: '{"test": 2432232314}',
  signature: 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
};

const keyOf = (secret: string) => Buffer.from(secret.slice('whsec_'.length), 'base64');
const newSecret = (bytes = 32) => `whsec_${randomBytes(bytes).toString('base64')}`;

describe('webhook signature', () => {
  it('is that of the published example', () => {
    const { secret, id, at: optionsAt, body, signature } = TEST_VECTOR;
    expect(signatureHeaders(id, body, [keyOf(secret)], optionsAt)).to.deep.equal({
      'webhook-id': id,
      'webhook-timestamp': '1614265330',
      'webhook-signature': signature,
    });
    expect(new Webhook(secret).sign(id, optionsAt, body)).to.equal(signature);
    expect(verifyWebhook({ ...signatureHeaders(id, body, [keyOf(secret)], optionsAt) }, body, secret, { now: optionsAt })).to.equal(id);
  });

  it('equals that of the reference library, for secrets of each length and bodies of each kind', () => {
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
  const [present, former, otherSecret] = [newSecret(), newSecret(), newSecret()];
  const now = new Date('2026-03-01T12:00:00.700Z');
  const body = '{"session":"s1"}';
  const headers = signatureHeaders('delivery', body, [keyOf(present), keyOf(former)], now);

  it('accepts either secret, either kind of headers, and a list of secrets', () => {
    expect(verifyWebhook(headers, body, present, { now })).to.equal('delivery');
    expect(verifyWebhook(headers, body, [otherSecret, former], { now })).to.equal('delivery');
    expect(verifyWebhook(new Headers(headers), Buffer.from(body), [present], { now })).to.equal('delivery');
    const severalSignatures = { ...headers, 'webhook-signature': `v1a,xyz v2,abc ${headers['webhook-signature']}` };
    expect(verifyWebhook(severalSignatures, body, former, { now }), 'signatures of other kinds').to.equal('delivery');
  });

  const signature = headers['webhook-signature'] ?? '';
  const [first = ''] = signature.split(' ');
  const changedRequests: Record<string, readonly [object, string]> = {
    'another body': [headers, '{"session":"s2"}'],
    'a reformatted body': [headers, '{ "session": "s1" }'],
    'another id': [{ ...headers, 'webhook-id': 'delivery2' }, body],
    'another time': [{ ...headers, 'webhook-timestamp': String(Math.floor(now.getTime() / 1000) + 1) }, body],
    'a time in another notation': [{ ...headers, 'webhook-timestamp': `0${headers['webhook-timestamp']}` }, body],
    'a dot moved from the id to the body': [{ ...headers, 'webhook-id': 'deli.very' }, body],
    'a signature without its version': [{ ...headers, 'webhook-signature': first.slice(3) }, body],
    'a signature of another version': [{ ...headers, 'webhook-signature': first.replace('v1,', 'v2,') }, body],
    'a part of a signature': [{ ...headers, 'webhook-signature': first.slice(0, -8) }, body],
    'no signature': [{ ...headers, 'webhook-signature': '' }, body],
    'no headers': [{}, body],
    'a duplicate header': [{ ...headers, 'webhook-id': ['delivery', 'delivery'] }, body],
    'a time that is invalid': [{ ...headers, 'webhook-timestamp': '1e9' }, body],
  };
  for (const [name, [signedHeaders, text]] of Object.entries(changedRequests)) {
    it(`rejects ${name}`, () => {
      expect(() => verifyWebhook(signedHeaders as Record<string, string>, text, [present, former], { now })).to.throw(
        WebhookVerificationError,
      );
    });
  }

  it('rejects a signature by another secret', () => {
    expect(() => verifyWebhook(headers, body, otherSecret, { now })).to.throw(WebhookVerificationError, 'no signature');
    expect(() => verifyWebhook(headers, body, [], { now })).to.throw(WebhookVerificationError, 'no signature');
  });

  it('rejects a call that is older than the tolerance, or from the future', () => {
    const optionsAt = (seconds: number) => ({ now: new Date(now.getTime() + seconds * 1000) });
    for (const seconds of [-299, 299]) expect(verifyWebhook(headers, body, present, optionsAt(seconds))).to.equal('delivery');
    for (const seconds of [-302, 302]) {
      expect(() => verifyWebhook(headers, body, present, optionsAt(seconds))).to.throw(WebhookVerificationError, 'too old');
    }
    const strict = { ...optionsAt(10), toleranceSeconds: 5 };
    expect(() => verifyWebhook(headers, body, present, strict)).to.throw(WebhookVerificationError, 'too old');
    const invalidTolerance = { now, toleranceSeconds: Number.NaN };
    expect(() => verifyWebhook(headers, body, present, invalidTolerance)).to.throw(WebhookVerificationError, 'too old');
  });

  it('rejects an invalid secret', () => {
    for (const invalidSecret of ['', 'whsec_', 'whsec_short', newSecret(23), newSecret(65), 'not base64 at all, but long enough']) {
      expect(() => verifyWebhook(headers, body, [present, invalidSecret], { now }), invalidSecret).to.throw(TypeError);
    }
    expect(() => verifyWebhook(headers, body, undefined as unknown as string, { now })).to.throw(TypeError);
  });
});
