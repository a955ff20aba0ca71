import { deflateSync } from 'node:zlib';
import { expect } from 'chai';
import { signJwt } from '../../../application/keys/sign-jwt.ts';
import { RemoteError, type RemoteResponse } from '../../../application/ports/remote.ts';
import { type KeyChain, signingChain } from '../../../domain/keys/key-chain.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import type { JsonObject } from '../../../domain/shared/json.ts';
import { packEntries } from '../../../domain/status-lists/bits.ts';
import { compressList } from '../../support/compress-list.ts';
import { ACME, type Asked, type Changes, formOf, PUBLIC_URL, present, query, World } from './kit.ts';

const URI = 'https://issuer.example/lists/1';
const ENTRIES = [
  { index: 1, status: 1 },
  { index: 2, status: 2 },
  { index: 3, status: 3 },
];

const withoutDisclosures = (text: string) => text.replace(/~.*~/, '~');

let world: World;

type Token = {
  readonly payload?: JsonObject;
  readonly chain?: KeyChain;
  readonly typ?: string;
  readonly edit?: (jwt: string) => string;
  readonly response?: Partial<RemoteResponse>;
};

async function serve(token: Token = {}): Promise<void> {
  const { chain = world.issuer, typ = 'statuslist+jwt' } = token;
  const lst = compressList(packEntries(2, 100, ENTRIES));
  const now = world.seconds;
  const status_list = { bits: 2, lst };
  const payload = { sub: URI, iat: now, exp: now + 3600, ttl: 600, status_list, ...token.payload };
  const jwt = await signJwt(world.kms, { chain, typ, payload });
  const body = Buffer.from(token.edit?.(jwt) ?? jwt);
  world.remote.answer = () => ({ status: 200, contentType: 'application/statuslist+jwt', body, ...token.response });
}

async function verify(index: number, changes: Changes = {}, uri = URI, asked?: Asked): Promise<string> {
  const request = asked ?? (await world.givenRequest());
  const visible = { status: { status_list: { idx: index, uri } }, ...changes.visible };
  const form = await formOf(request, { card: [present(world, request, { ...changes, visible })] });
  try {
    await world.receiveResponse.execute(ACME, request.publicId, form);
    return 'accepted';
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    const { outcome } = await world.session(request.session.id);
    const reasons = (outcome?.report ?? []).map((entry) => (entry as JsonObject)['reason']);
    return String(reasons.find((reason) => reason !== undefined));
  }
}

describe('status of a presented credential', () => {
  beforeEach(async () => {
    world = await World.make();
    await world.configure();
    await serve();
  });

  const entries = [
    [0, 'accepted'],
    [1, 'status_revoked'],
    [2, 'status_suspended'],
    [3, 'status_unknown'],
    [100, 'status_invalid'],
  ] as const;
  for (const [index, expected] of entries) {
    it(`at ${index} is ${expected}`, async () => {
      expect(await verify(index)).to.equal(expected);
      expect(world.remote.calls).to.deep.equal([{ url: URI, accept: 'application/statuslist+jwt' }]);
      expect(world.remote.following, 'also where it has moved').to.deep.equal([URI]);
    });
  }

  it('is not fetched for an invalid credential', async () => {
    expect(await verify(0, { visible: { exp: world.seconds - 100 } })).to.equal('credential_expired');
    expect(world.remote.calls).to.have.length(0);
  });

  it('is not fetched for a credential that was not requested', async () => {
    expect(await verify(0, { visible: { vct: 'urn:other' } })).to.equal('type_mismatch');
    expect(await verify(0, { text: (text) => withoutDisclosures(text) })).to.equal('sd_hash_mismatch');
    expect(await verify(0, { credential: withoutDisclosures })).to.equal('missing_claim');
    expect(world.remote.calls).to.have.length(0);
  });

  it('is not fetched for a response to another request, not even for a valid credential', async () => {
    await world.configure({ dcql_query: query({ id: 'card', multiple: true }) });
    const asked = await world.request();
    const visible = { status: { status_list: { idx: 0, uri: URI } } };
    const card = [
      present(world, asked, { visible }),
      present(world, asked, { visible: { exp: world.seconds - 100 }, kb: { nonce: 'other' } }),
    ];
    const form = await formOf(asked, { card });
    await world.receiveResponse.execute(ACME, asked.publicId, form).catch(() => {});
    const { outcome } = await world.session(asked.session.id);
    expect(outcome?.failure?.message).to.include('nonce_mismatch').and.include('credential_expired');
    expect(world.remote.calls).to.have.length(0);
    const checks = (outcome?.report ?? []).filter((entry) => (entry as JsonObject)['check'] === 'status');
    expect(checks, 'nobody is to read that it was').to.deep.equal([]);
  });

  it('may be signed by another key under the anchor of the credential', async () => {
    const { root, ...other } = await world.keyChain('elsewhere', 'lists', ['statusList']);
    expect(root).to.not.equal(undefined);
    await world.configure({ trustAnchors: [{ keyChainId: 'signing' }] });
    const [signing] = (await (await world.caller()).tenant.keyChains()).filter(({ id }) => id === 'signing');
    if (signing === undefined) throw new Error('no chain');
    await serve({ chain: signing });
    expect(await verify(0, { issuer: signing })).to.equal('accepted');
    world.remoteStatusLists.clear(ACME);
    await serve({ chain: { ...other } });
    expect(await verify(0, { issuer: signing })).to.equal('status_invalid');
  });

  // HAIP 1.0 sections 6.1 and 6.1.1: the anchor is no part of `x5c`, of the token as of its credential
  for (const [profile, expected] of [
    [null, 'accepted'],
    ['haip', 'status_invalid'],
  ] as const) {
    it(`is ${expected} by a token that brings its anchor, for a tenant with the profile ${profile}`, async () => {
      await world.store.forTenant(ACME, async ({ tenant }) => tenant.save({ ...(await tenant.get()), profile }), { by: 'system' });
      const body = { redirectUri: 'https://shop.example/done' };
      const { active, root } = world.issuer;
      const certificates = [...signingChain(world.issuer), root?.certificate ?? ''];
      const { root: _, ...rootless } = world.issuer;
      await serve();
      expect(await verify(0, {}, URI, await world.request({ body })), 'without it').to.equal('accepted');
      world.remoteStatusLists.clear(ACME);
      await serve({ chain: { ...rootless, active: { ...active, certificates } } as KeyChain });
      expect(await verify(0, {}, URI, await world.request({ body }))).to.equal(expected);
    });
  }

  const bad: Readonly<Record<string, [string, () => Token | Promise<Token>]>> = {
    'another signer': ['status_invalid', async () => ({ chain: await world.keyChain('foe', 'f', ['statusList']) })],
    'another trusted issuer as signer': [
      'status_invalid',
      async () => {
        const chains = await (await world.caller()).tenant.keyChains();
        const chain = chains.find(({ id }) => id === 'signing');
        if (chain === undefined) throw new Error('no chain');
        return { chain };
      },
    ],
    'an expired token': ['status_invalid', () => ({ payload: { exp: world.seconds - 60 } })],
    'a token with a time in the future': ['status_invalid', () => ({ payload: { iat: world.seconds + 100 } })],
    'a token that begins tomorrow': ['status_invalid', () => ({ payload: { nbf: world.seconds + 86_400 } })],
    'a token for another recipient': ['status_invalid', () => ({ payload: { aud: 'https://other.example' } })],
    'another sub': ['status_invalid', () => ({ payload: { sub: `${URI}/` } })],
    'another typ': ['status_invalid', () => ({ typ: 'JWT' })],
    'a ttl of zero': ['status_invalid', () => ({ payload: { ttl: 0 } })],
    'a broken signature': ['status_invalid', () => ({ edit: (jwt) => `${jwt.slice(0, -4)}AAAA` })],
    'three bits': ['status_invalid', () => ({ payload: { status_list: { bits: 3, lst: 'eNrbuRgAAhcBXQ' } } })],
    'no zlib': ['status_invalid', () => ({ payload: { status_list: { bits: 1, lst: 'AAAA' } } })],
    'a list that inflates beyond measure': [
      'status_invalid',
      () => {
        const lst = deflateSync(Buffer.alloc(17 * 1024 * 1024)).toString('base64url');
        return { payload: { status_list: { bits: 1, lst } } };
      },
    ],
    'no JWS at all': ['status_invalid', () => ({ edit: () => 'hello' })],
    'another content type': ['status_invalid', () => ({ response: { contentType: 'application/jwt' } })],
    'an error': ['status_unavailable', () => ({ response: { status: 500 } })],
  };
  for (const [what, [expected, token]] of Object.entries(bad)) {
    it(`is ${expected} with ${what}`, async () => {
      await serve(await token());
      expect(await verify(0)).to.equal(expected);
    });
  }

  for (const fault of ['unreachable', 'timeout', 'busy', 'too_large', 'redirected', 'refused_address'] as const) {
    it(`is status_unavailable when the list is ${fault}`, async () => {
      world.remote.answer = () => new RemoteError(fault, 'no');
      expect(await verify(0)).to.equal('status_unavailable');
    });
  }

  for (const [what, status] of Object.entries({
    'no status_list': {},
    'a negative idx': { status_list: { idx: -1, uri: URI } },
    'no URI': { status_list: { idx: 0, uri: 'x' } },
  })) {
    it(`is status_invalid with ${what}`, async () => {
      expect(await verify(0, { visible: { status } })).to.equal('status_invalid');
      expect(world.remote.calls).to.have.length(0);
    });
  }

  it('is fetched once for 50 concurrent requests', async () => {
    await world.configure();
    const requests: Asked[] = [];
    for (let made = 0; made < 50; made++) requests.push(await world.request());
    const results = await Promise.all(requests.map((asked) => verify(0, {}, URI, asked)));
    expect(new Set(results)).to.deep.equal(new Set(['accepted']));
    expect(world.remote.calls).to.have.length(1);
    const { size, hits, misses, entries } = world.remoteStatusLists.stats(ACME);
    expect([size, hits + misses, entries[0]?.uri]).to.deep.equal([1, 50, URI]);
  });

  describe('beyond the end of the cached list', () => {
    const grown = () => ({ payload: { status_list: { bits: 2, lst: compressList(packEntries(2, 200, ENTRIES)) } } });

    it('is read from a newer list, which is fetched once for all waiting requests', async () => {
      expect(await verify(150)).to.equal('status_invalid');
      await serve(grown());
      world.clock.time += 11_000;
      expect(await Promise.all([1, 2, 3].map(() => verify(150)))).to.deep.equal(Array(3).fill('accepted'));
      expect(world.remote.calls).to.have.length(2);
    });

    it('is rejected without a call when the copy is only seconds old', async () => {
      expect(await verify(0)).to.equal('accepted');
      await serve(grown());
      expect(await verify(150)).to.equal('status_invalid');
      expect(world.remote.calls).to.have.length(1);
    });

    it('is rejected when the newer list does not contain it either, or is unavailable, and the copy is still valid', async () => {
      expect(await verify(0)).to.equal('accepted');
      world.clock.time += 11_000;
      expect(await verify(150)).to.equal('status_invalid');
      expect(world.remote.calls).to.have.length(2);
      expect(await verify(150)).to.equal('status_invalid');
      expect(world.remote.calls).to.have.length(2);
      world.remote.answer = () => new RemoteError('unreachable', 'nobody there');
      world.clock.time += 12_000;
      expect(await verify(150)).to.equal('status_invalid');
      expect(await verify(0)).to.equal('accepted');
    });
  });

  it('is cached for its ttl, then fetched again, and cleared on demand', async () => {
    for (const [after, fetches] of [
      [0, 1],
      [599_000, 1],
      [2_000, 2],
    ] as const) {
      world.clock.time += after;
      expect(await verify(0)).to.equal('accepted');
      expect(world.remote.calls).to.have.length(fetches);
    }
    world.remoteStatusLists.clear('other');
    await verify(0);
    expect(world.remote.calls).to.have.length(2);
    world.remoteStatusLists.clear(ACME);
    await verify(0);
    expect(world.remote.calls).to.have.length(3);
  });

  it('is used after a failed refresh until the token expires, and failures are cached for 30 seconds', async () => {
    expect(await verify(0)).to.equal('accepted');
    const { remoteStatusLists: lists } = world;
    expect(lists.stats(ACME).failing).to.deep.equal([]);
    world.remote.answer = () => new RemoteError('unreachable', 'no');
    world.clock.time += 700_000;
    expect([await verify(0), await verify(1)]).to.deep.equal(['accepted', 'status_revoked']);
    expect(world.remote.calls).to.have.length(2);
    const failedAt = world.clock.now();
    const [{ uri, reason, ...times } = { uri: '', reason: '' }, ...more] = lists.stats(ACME).failing;
    expect([uri, more]).to.deep.equal([URI, []]);
    expect(reason).to.include('unreachable');
    expect(times).to.deep.equal({ failedAt, retriedAt: new Date(failedAt.getTime() + 30_000) });
    expect(lists.stats('other').failing).to.deep.equal([]);
    world.clock.time += 31_000;
    expect(lists.stats(ACME).failing).to.deep.equal([]);
    expect(await verify(0)).to.equal('accepted');
    expect(world.remote.calls).to.have.length(3);
    world.clock.time += 3_600_000;
    expect(await verify(0)).to.equal('status_unavailable');
  });

  describe('in a list of this service', () => {
    const uri = `${PUBLIC_URL}/acme/status-list/main`;
    async function own(): Promise<KeyChain> {
      const chain = (await (await world.caller()).tenant.keyChains()).find(({ id }) => id === 'signing');
      if (chain === undefined) throw new Error('no chain');
      return chain;
    }
    beforeEach(() => {
      world.localStatusLists.entries.set('acme/main/0', 0).set('acme/main/1', 1);
    });
    for (const [index, expected] of [
      [0, 'accepted'],
      [1, 'status_revoked'],
      [2, 'status_invalid'],
    ] as const) {
      it(`at ${index} is ${expected} without any call`, async () => {
        expect(await verify(index, { issuer: await own() }, uri)).to.equal(expected);
        expect(world.remote.calls).to.have.length(0);
      });
    }
    it('is status_invalid for credentials of another issuer', async () => {
      expect(await verify(0, {}, uri)).to.equal('status_invalid');
    });
    it('of another tenant is status_invalid, unless that tenant issued the credential', async () => {
      const other = 'other' as typeof ACME;
      await world.addTenant(other);
      world.localStatusLists.entries.set('other/main/0', 0);
      const theirs = `${PUBLIC_URL}/other/status-list/main`;
      expect(await verify(0, { issuer: await own() }, theirs)).to.equal('status_invalid');
      const chains = await (await world.caller(other)).tenant.keyChains();
      const issuer = chains.find(({ id }) => id === 'signing');
      if (issuer === undefined) throw new Error('no chain');
      const { writePemCertificates } = await import('../../../domain/formats/der/pem.ts');
      await world.configure({ trustAnchors: [{ certificate: writePemCertificates([issuer.root?.certificate ?? '']) }] });
      expect(await verify(0, { issuer }, theirs)).to.equal('accepted');
      expect(signingChain(issuer)).to.have.length(1);
    });
    it('under a malformed address is status_invalid', async () => {
      for (const end of ['%ZZ', 'main%', '%2e%2e', '']) {
        expect(await verify(0, { issuer: await own() }, `${PUBLIC_URL}/acme/status-list/${end}`), end).to.equal('status_invalid');
      }
    });
    it('of an unknown tenant is status_invalid', async () => {
      expect(await verify(0, { issuer: await own() }, `${PUBLIC_URL}/nobody/status-list/main`)).to.equal('status_invalid');
    });
  });
});

describe('transaction data', () => {
  const entry = (...credential_ids: string[]) => ({ type: 'pay', credential_ids, amount: '5' });
  const two = query({ id: 'card' }, { id: 'other', meta: { vct_values: ['urn:other'] } });
  const hashOf = async (text: string) => (await import('node:crypto')).hash('sha256', text, 'base64url');

  async function run(
    config: JsonObject,
    confirm: (texts: readonly string[]) => Promise<readonly string[] | undefined>,
    by: 'card' | 'other' = 'card',
    more: JsonObject = {},
  ): Promise<string> {
    world = await World.make();
    await world.configure(config);
    const asked = await world.request();
    const hashes = await confirm(asked.request.transactionData ?? []);
    const kb = { transaction_data_hashes: hashes, ...more };
    const vpToken = {
      card: [present(world, asked, by === 'card' ? { kb } : {})],
      ...(config['dcql_query'] !== undefined && {
        other: [present(world, asked, { visible: { vct: 'urn:other' }, ...(by === 'other' && { kb }) })],
      }),
    };
    const form = await formOf(asked, vpToken);
    const done = await world.receiveResponse.execute(ACME, asked.publicId, form).catch((error) => {
      if (!(error instanceof Failure)) throw error;
    });
    return done === undefined ? String((await world.session(asked.session.id)).outcome?.failure?.message) : 'accepted';
  }

  it('are confirmed by the hash of the text that was sent', async () => {
    const config = { transaction_data: [entry('card')] };
    expect(await run(config, async ([text = '']) => [await hashOf(text)])).to.equal('accepted');
  });
  // N127
  it('are rejected without hashes', async () => {
    expect(await run({ transaction_data: [entry('card')] }, async () => undefined)).to.include('transaction_data_missing');
  });
  // N128
  it('are rejected with the hash of the decoded text', async () => {
    const decoded = async ([text = '']: readonly string[]) => [await hashOf(Buffer.from(text, 'base64url').toString())];
    expect(await run({ transaction_data: [entry('card')] }, decoded)).to.include('transaction_data_mismatch');
  });
  it('are rejected when the request names algorithms and the answer none', async () => {
    const config = { transaction_data: [{ ...entry('card'), transaction_data_hashes_alg: ['sha-256'] }] };
    const confirm = async ([text = '']: readonly string[]) => [await hashOf(text)];
    expect(await run(config, confirm)).to.include('transaction_data_alg');
    expect(await run(config, confirm, 'card', { transaction_data_hashes_alg: 'sha-256' })).to.equal('accepted');
  });
  // N131
  it('are rejected with an additional hash', async () => {
    const more = async ([text = '']: readonly string[]) => [await hashOf(text), await hashOf('x')];
    expect(await run({ transaction_data: [entry('card')] }, more)).to.include('transaction_data_mismatch');
  });
  it('of several credentials are confirmed by one of them', async () => {
    const config = { dcql_query: two, transaction_data: [entry('card', 'other')] };
    expect(await run(config, async ([text = '']) => [await hashOf(text)], 'other')).to.equal('accepted');
    expect(await run(config, async () => undefined)).to.include('transaction_data_missing');
  });
  // N133
  it('are rejected when a credential confirms them that they do not name', async () => {
    const config = { dcql_query: two, transaction_data: [entry('other')] };
    expect(await run(config, async ([text = '']) => [await hashOf(text)], 'card')).to.include('transaction_data_missing');
  });
});
