import { deflateSync } from 'node:zlib';
import { expect } from 'chai';
import { signJwt } from '../../../application/keys/sign-jwt.ts';
import { RemoteError, type RemoteResponse } from '../../../application/ports/remote.ts';
import { type KeyChain, signingChain } from '../../../domain/keys/key-chain.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import type { JsonObject } from '../../../domain/shared/json.ts';
import { packEntries } from '../../../domain/status-lists/bits.ts';
import { compressList } from '../../support/compress-list.ts';
import { ACME, type FetchedRequest, type PresentationChanges, PUBLIC_URL, present, query, responseForm, World } from './kit.ts';

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

async function serveList(token: Token = {}): Promise<void> {
  const { chain = world.issuer, typ = 'statuslist+jwt' } = token;
  const lst = compressList(packEntries(2, 100, ENTRIES));
  const now = world.seconds;
  const status_list = { bits: 2, lst };
  const payload = { sub: URI, iat: now, exp: now + 3600, ttl: 600, status_list, ...token.payload };
  const jwt = await signJwt(world.kms, { chain, typ, payload });
  const body = Buffer.from(token.edit?.(jwt) ?? jwt);
  world.remote.answer = () => ({ status: 200, contentType: 'application/statuslist+jwt', body, ...token.response });
}

async function verifyEntry(index: number, changes: PresentationChanges = {}, uri = URI, fetchedRequest?: FetchedRequest): Promise<string> {
  const request = fetchedRequest ?? (await world.preparedRequest());
  const visible = { status: { status_list: { idx: index, uri } }, ...changes.visible };
  const form = await responseForm(request, { card: [present(world, request, { ...changes, visible })] });
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
    await serveList();
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
      expect(await verifyEntry(index)).to.equal(expected);
      expect(world.remote.calls).to.deep.equal([{ url: URI, accept: 'application/statuslist+jwt' }]);
      expect(world.remote.urlsWithRedirects, 'redirects are allowed').to.deep.equal([URI]);
    });
  }

  it('is not fetched for an invalid credential', async () => {
    expect(await verifyEntry(0, { visible: { exp: world.seconds - 100 } })).to.equal('credential_expired');
    expect(world.remote.calls).to.have.length(0);
  });

  it('is not fetched for a credential that was not requested', async () => {
    expect(await verifyEntry(0, { visible: { vct: 'urn:other' } })).to.equal('type_mismatch');
    expect(await verifyEntry(0, { text: (text) => withoutDisclosures(text) })).to.equal('sd_hash_mismatch');
    expect(await verifyEntry(0, { credential: withoutDisclosures })).to.equal('missing_claim');
    expect(world.remote.calls).to.have.length(0);
  });

  it('is not fetched for a response to another request, not even for a valid credential', async () => {
    await world.configure({ dcql_query: query({ id: 'card', multiple: true }) });
    const fetchedRequest = await world.request();
    const visible = { status: { status_list: { idx: 0, uri: URI } } };
    const card = [
      present(world, fetchedRequest, { visible }),
      present(world, fetchedRequest, { visible: { exp: world.seconds - 100 }, kb: { nonce: 'other' } }),
    ];
    const form = await responseForm(fetchedRequest, { card });
    await world.receiveResponse.execute(ACME, fetchedRequest.publicId, form).catch(() => {});
    const { outcome } = await world.session(fetchedRequest.session.id);
    expect(outcome?.failure?.message).to.include('nonce_mismatch').and.include('credential_expired');
    expect(world.remote.calls).to.have.length(0);
    const checks = (outcome?.report ?? []).filter((entry) => (entry as JsonObject)['check'] === 'status');
    expect(checks, 'the report has no positive result').to.deep.equal([]);
  });

  it('may be signed by another key under the anchor of the credential', async () => {
    const { root, ...otherTenant } = await world.keyChain('elsewhere', 'lists', ['statusList']);
    expect(root).to.not.equal(undefined);
    await world.configure({ trustAnchors: [{ keyChainId: 'signing' }] });
    const [signing] = (await (await world.caller()).tenant.keyChains()).filter(({ id }) => id === 'signing');
    if (signing === undefined) throw new Error('no chain');
    await serveList({ chain: signing });
    expect(await verifyEntry(0, { issuer: signing })).to.equal('accepted');
    world.remoteStatusLists.clear(ACME);
    await serveList({ chain: { ...otherTenant } });
    expect(await verifyEntry(0, { issuer: signing })).to.equal('status_invalid');
  });

  // HAIP 1.0 sections 6.1 and 6.1.1: `x5c` must not contain the anchor, neither in the token nor in the credential
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
      await serveList();
      expect(await verifyEntry(0, {}, URI, await world.request({ body })), 'without it').to.equal('accepted');
      world.remoteStatusLists.clear(ACME);
      await serveList({ chain: { ...rootless, active: { ...active, certificates } } as KeyChain });
      expect(await verifyEntry(0, {}, URI, await world.request({ body }))).to.equal(expected);
    });
  }

  const invalidLists: Readonly<Record<string, [string, () => Token | Promise<Token>]>> = {
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
    'a token that is valid from tomorrow': ['status_invalid', () => ({ payload: { nbf: world.seconds + 86_400 } })],
    'a token for another recipient': ['status_invalid', () => ({ payload: { aud: 'https://other.example' } })],
    'another sub': ['status_invalid', () => ({ payload: { sub: `${URI}/` } })],
    'another typ': ['status_invalid', () => ({ typ: 'JWT' })],
    'a ttl of zero': ['status_invalid', () => ({ payload: { ttl: 0 } })],
    'a broken signature': ['status_invalid', () => ({ edit: (jwt) => `${jwt.slice(0, -4)}AAAA` })],
    'three bits': ['status_invalid', () => ({ payload: { status_list: { bits: 3, lst: 'eNrbuRgAAhcBXQ' } } })],
    'no zlib': ['status_invalid', () => ({ payload: { status_list: { bits: 1, lst: 'AAAA' } } })],
    'a list that inflates beyond the limit': [
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
  for (const [description, [expected, token]] of Object.entries(invalidLists)) {
    it(`is ${expected} with ${description}`, async () => {
      await serveList(await token());
      expect(await verifyEntry(0)).to.equal(expected);
    });
  }

  for (const remoteFault of ['unreachable', 'timeout', 'busy', 'too_large', 'redirected', 'refused_address'] as const) {
    it(`is status_unavailable when the list is ${remoteFault}`, async () => {
      world.remote.answer = () => new RemoteError(remoteFault, 'no');
      expect(await verifyEntry(0)).to.equal('status_unavailable');
    });
  }

  for (const [description, status] of Object.entries({
    'no status_list': {},
    'a negative idx': { status_list: { idx: -1, uri: URI } },
    'no URI': { status_list: { idx: 0, uri: 'x' } },
  })) {
    it(`is status_invalid with ${description}`, async () => {
      expect(await verifyEntry(0, { visible: { status } })).to.equal('status_invalid');
      expect(world.remote.calls).to.have.length(0);
    });
  }

  it('is fetched once for 50 concurrent requests', async () => {
    await world.configure();
    const requests: FetchedRequest[] = [];
    for (let count = 0; count < 50; count++) requests.push(await world.request());
    const results = await Promise.all(requests.map((fetchedRequest) => verifyEntry(0, {}, URI, fetchedRequest)));
    expect(new Set(results)).to.deep.equal(new Set(['accepted']));
    expect(world.remote.calls).to.have.length(1);
    const { size, hits, misses, entries } = world.remoteStatusLists.stats(ACME);
    expect([size, hits + misses, entries[0]?.uri]).to.deep.equal([1, 50, URI]);
  });

  describe('beyond the end of the cached list', () => {
    const grown = () => ({ payload: { status_list: { bits: 2, lst: compressList(packEntries(2, 200, ENTRIES)) } } });

    it('is read from a newer list, which is fetched once for all waiting requests', async () => {
      expect(await verifyEntry(150)).to.equal('status_invalid');
      await serveList(grown());
      world.clock.time += 11_000;
      expect(await Promise.all([1, 2, 3].map(() => verifyEntry(150)))).to.deep.equal(Array(3).fill('accepted'));
      expect(world.remote.calls).to.have.length(2);
    });

    it('is rejected without a call when the copy is only seconds old', async () => {
      expect(await verifyEntry(0)).to.equal('accepted');
      await serveList(grown());
      expect(await verifyEntry(150)).to.equal('status_invalid');
      expect(world.remote.calls).to.have.length(1);
    });

    it('is rejected when the newer list does not contain it either, or is unavailable, and the copy is still valid', async () => {
      expect(await verifyEntry(0)).to.equal('accepted');
      world.clock.time += 11_000;
      expect(await verifyEntry(150)).to.equal('status_invalid');
      expect(world.remote.calls).to.have.length(2);
      expect(await verifyEntry(150)).to.equal('status_invalid');
      expect(world.remote.calls).to.have.length(2);
      world.remote.answer = () => new RemoteError('unreachable', 'unreachable');
      world.clock.time += 12_000;
      expect(await verifyEntry(150)).to.equal('status_invalid');
      expect(await verifyEntry(0)).to.equal('accepted');
    });
  });

  it('is cached for its ttl, then fetched again, and cleared on demand', async () => {
    for (const [after, fetches] of [
      [0, 1],
      [599_000, 1],
      [2_000, 2],
    ] as const) {
      world.clock.time += after;
      expect(await verifyEntry(0)).to.equal('accepted');
      expect(world.remote.calls).to.have.length(fetches);
    }
    world.remoteStatusLists.clear('other');
    await verifyEntry(0);
    expect(world.remote.calls).to.have.length(2);
    world.remoteStatusLists.clear(ACME);
    await verifyEntry(0);
    expect(world.remote.calls).to.have.length(3);
  });

  it('is used after a failed refresh until the token expires, and failures are cached for 30 seconds', async () => {
    expect(await verifyEntry(0)).to.equal('accepted');
    const { remoteStatusLists: lists } = world;
    expect(lists.stats(ACME).failing).to.deep.equal([]);
    world.remote.answer = () => new RemoteError('unreachable', 'no');
    world.clock.time += 700_000;
    expect([await verifyEntry(0), await verifyEntry(1)]).to.deep.equal(['accepted', 'status_revoked']);
    expect(world.remote.calls).to.have.length(2);
    const failedAt = world.clock.now();
    const [{ uri, reason, ...times } = { uri: '', reason: '' }, ...changes] = lists.stats(ACME).failing;
    expect([uri, changes]).to.deep.equal([URI, []]);
    expect(reason).to.include('unreachable');
    expect(times).to.deep.equal({ failedAt, retriedAt: new Date(failedAt.getTime() + 30_000) });
    expect(lists.stats('other').failing).to.deep.equal([]);
    world.clock.time += 31_000;
    expect(lists.stats(ACME).failing).to.deep.equal([]);
    expect(await verifyEntry(0)).to.equal('accepted');
    expect(world.remote.calls).to.have.length(3);
    world.clock.time += 3_600_000;
    expect(await verifyEntry(0)).to.equal('status_unavailable');
  });

  describe('in a list of this service', () => {
    const uri = `${PUBLIC_URL}/acme/status-list/main`;
    async function ownSigner(): Promise<KeyChain> {
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
        expect(await verifyEntry(index, { issuer: await ownSigner() }, uri)).to.equal(expected);
        expect(world.remote.calls).to.have.length(0);
      });
    }
    it('is status_invalid for credentials of another issuer', async () => {
      expect(await verifyEntry(0, {}, uri)).to.equal('status_invalid');
    });
    it('of another tenant is status_invalid, unless that tenant issued the credential', async () => {
      const otherTenant = 'other' as typeof ACME;
      await world.addTenant(otherTenant);
      world.localStatusLists.entries.set('other/main/0', 0);
      const otherUri = `${PUBLIC_URL}/other/status-list/main`;
      expect(await verifyEntry(0, { issuer: await ownSigner() }, otherUri)).to.equal('status_invalid');
      const chains = await (await world.caller(otherTenant)).tenant.keyChains();
      const issuer = chains.find(({ id }) => id === 'signing');
      if (issuer === undefined) throw new Error('no chain');
      const { writePemCertificates } = await import('../../../domain/formats/der/pem.ts');
      await world.configure({ trustAnchors: [{ certificate: writePemCertificates([issuer.root?.certificate ?? '']) }] });
      expect(await verifyEntry(0, { issuer }, otherUri)).to.equal('accepted');
      expect(signingChain(issuer)).to.have.length(1);
    });
    it('under a malformed address is status_invalid', async () => {
      for (const listId of ['%ZZ', 'main%', '%2e%2e', '']) {
        expect(await verifyEntry(0, { issuer: await ownSigner() }, `${PUBLIC_URL}/acme/status-list/${listId}`), listId).to.equal(
          'status_invalid',
        );
      }
    });
    it('of an unknown tenant is status_invalid', async () => {
      expect(await verifyEntry(0, { issuer: await ownSigner() }, `${PUBLIC_URL}/unknown/status-list/main`)).to.equal('status_invalid');
    });
  });
});

describe('transaction data', () => {
  const entry = (...credential_ids: string[]) => ({ type: 'pay', credential_ids, amount: '5' });
  const twoCredentials = query({ id: 'card' }, { id: 'other', meta: { vct_values: ['urn:other'] } });
  const hashOf = async (text: string) => (await import('node:crypto')).hash('sha256', text, 'base64url');

  async function verifyWithBackend(
    config: JsonObject,
    confirmHashes: (texts: readonly string[]) => Promise<readonly string[] | undefined>,
    queryId: 'card' | 'other' = 'card',
    changes: JsonObject = {},
  ): Promise<string> {
    world = await World.make();
    await world.configure(config);
    const fetchedRequest = await world.request();
    const hashes = await confirmHashes(fetchedRequest.request.transactionData ?? []);
    const kb = { transaction_data_hashes: hashes, ...changes };
    const vpToken = {
      card: [present(world, fetchedRequest, queryId === 'card' ? { kb } : {})],
      ...(config['dcql_query'] !== undefined && {
        other: [present(world, fetchedRequest, { visible: { vct: 'urn:other' }, ...(queryId === 'other' && { kb }) })],
      }),
    };
    const form = await responseForm(fetchedRequest, vpToken);
    const result = await world.receiveResponse.execute(ACME, fetchedRequest.publicId, form).catch((error) => {
      if (!(error instanceof Failure)) throw error;
    });
    return result === undefined ? String((await world.session(fetchedRequest.session.id)).outcome?.failure?.message) : 'accepted';
  }

  it('are confirmed by the hash of the text that was sent', async () => {
    const config = { transaction_data: [entry('card')] };
    expect(await verifyWithBackend(config, async ([text = '']) => [await hashOf(text)])).to.equal('accepted');
  });
  // N127
  it('are rejected without hashes', async () => {
    expect(await verifyWithBackend({ transaction_data: [entry('card')] }, async () => undefined)).to.include('transaction_data_missing');
  });
  // N128
  it('are rejected with the hash of the decoded text', async () => {
    const decodedHashes = async ([text = '']: readonly string[]) => [await hashOf(Buffer.from(text, 'base64url').toString())];
    expect(await verifyWithBackend({ transaction_data: [entry('card')] }, decodedHashes)).to.include('transaction_data_mismatch');
  });
  it('are rejected when the request names algorithms and the answer none', async () => {
    const config = { transaction_data: [{ ...entry('card'), transaction_data_hashes_alg: ['sha-256'] }] };
    const confirmHashes = async ([text = '']: readonly string[]) => [await hashOf(text)];
    expect(await verifyWithBackend(config, confirmHashes)).to.include('transaction_data_alg');
    expect(await verifyWithBackend(config, confirmHashes, 'card', { transaction_data_hashes_alg: 'sha-256' })).to.equal('accepted');
  });
  // N131
  it('are rejected with an additional hash', async () => {
    const changes = async ([text = '']: readonly string[]) => [await hashOf(text), await hashOf('x')];
    expect(await verifyWithBackend({ transaction_data: [entry('card')] }, changes)).to.include('transaction_data_mismatch');
  });
  it('of several credentials are confirmed by one of them', async () => {
    const config = { dcql_query: twoCredentials, transaction_data: [entry('card', 'other')] };
    expect(await verifyWithBackend(config, async ([text = '']) => [await hashOf(text)], 'other')).to.equal('accepted');
    expect(await verifyWithBackend(config, async () => undefined)).to.include('transaction_data_missing');
  });
  // N133
  it('are rejected when a credential confirms them that they do not name', async () => {
    const config = { dcql_query: twoCredentials, transaction_data: [entry('other')] };
    expect(await verifyWithBackend(config, async ([text = '']) => [await hashOf(text)], 'card')).to.include('transaction_data_missing');
  });
});
