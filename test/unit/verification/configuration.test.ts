import { expect } from 'chai';
import { toConfigurationView } from '../../../adapters/http/verification/configuration.view.ts';
import {
  DeletePresentationConfiguration,
  GetPresentationConfiguration,
  ListPresentationConfigurations,
  UpdatePresentationConfiguration,
} from '../../../application/verification/presentation-configurations.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import type { JsonObject } from '../../../domain/shared/json.ts';
import { PresentationConfigurationBody, PresentationConfigurationUpdate } from '../../../domain/verification/configuration.ts';
import { cachedCaller } from '../../support/remembered-caller.ts';
import { type CertifiedKey, certify, pem } from '../../support/test-certificates.ts';
import { ACME, pemOf, query, World } from './kit.ts';

const AUTH = { type: 'apiKey', config: { headerName: 'x-key', value: 'secret-1' } };
const MASKED = { type: 'apiKey', config: { headerName: 'x-key', value: '***' } };
const HOOK = { url: 'https://shop.example/hook', auth: AUTH };

async function failureOf(work: Promise<unknown>): Promise<Failure> {
  const thrown: unknown = await work.then(
    () => new Error('nothing was thrown'),
    (error: unknown) => error,
  );
  if (thrown instanceof Failure) return thrown;
  throw thrown;
}

describe('presentation configuration', () => {
  let world: World;
  beforeEach(async () => {
    world = await World.make();
  });
  const patch = async (changes: JsonObject) =>
    new UpdatePresentationConfiguration(world).execute(await world.caller(), 'card', PresentationConfigurationUpdate.parse(changes));
  const read = async () => new GetPresentationConfiguration({}).execute(await world.caller(), 'card');

  it('is created, replaced, changed and removed', async () => {
    await world.configure({ lifeTime: 60 });
    const created = await read();
    world.clock.time += 1000;
    await world.configure({ description: 'Second' });
    const replaced = await read();
    expect(replaced).to.include({ lifeTime: 300, description: 'Second' });
    expect(replaced.createdAt).to.deep.equal(created.createdAt);
    expect(replaced.updatedAt.getTime()).to.be.above(created.updatedAt.getTime());

    const changed = await patch({ lifeTime: 90, description: null });
    expect(changed).to.include({ lifeTime: 90, responseMode: 'direct_post.jwt' }).and.not.have.property('description');
    expect(changed.trustAnchors).to.have.length(2);
    expect(await patch({ lifeTime: null, trustAnchors: null })).to.include({ lifeTime: 300 });
    expect((await read()).trustAnchors).to.deep.equal([{ ownAuthorities: true }]);

    await new DeletePresentationConfiguration(world).execute(await world.caller(), 'card');
    expect((await failureOf(read())).code).to.equal('not_found');
  });

  it('is validated as a whole after a change', async () => {
    await world.configure({ transaction_data: [{ type: 'pay', credential_ids: ['card'] }] });
    const failure = await failureOf(patch({ dcql_query: query({ id: 'other' }) }));
    expect(failure.code).to.equal('invalid_input');
    expect(failure.details.errors?.[0]?.path).to.equal('transaction_data.0.credential_ids.0');
    expect((await failureOf(patch({ id: 'other' }))).details.errors?.[0]?.path).to.equal('id');
  });

  let ended: CertifiedKey;
  let mute: CertifiedKey;
  let web: CertifiedKey;
  before(async () => {
    ended = await certify({ name: 'Ended', from: '2020-01-01T00:00:00Z', until: '2021-01-01T00:00:00Z' });
    mute = await certify({ name: 'Mute', signs: false });
    web = await certify({ name: 'Web', purposes: ['1.3.6.1.5.5.7.3.1'] });
  });

  const references: Readonly<Record<string, [string, (world: World) => JsonObject]>> = {
    'an unknown access key chain': ['accessKeyChainId', () => ({ accessKeyChainId: 'nobody' })],
    'an access key chain for something else': ['accessKeyChainId', () => ({ accessKeyChainId: 'signing' })],
    'an unknown key chain as anchor': ['trustAnchors.0.keyChainId', () => ({ trustAnchors: [{ keyChainId: 'x' }] })],
    'an anchor that is not a certificate': ['trustAnchors.0.certificate', () => ({ trustAnchors: [{ certificate: 'x' }] })],
    'an anchor that has ended': ['trustAnchors.0.certificate', () => ({ trustAnchors: [{ certificate: pem(ended) }] })],
    'an anchor that may not sign certificates': ['trustAnchors.0.certificate', () => ({ trustAnchors: [{ certificate: pem(mute) }] })],
    'an anchor that is for a web server': ['trustAnchors.0.certificate', () => ({ trustAnchors: [{ certificate: pem(web) }] })],
    'a key chain that signs no credentials as anchor': ['trustAnchors.0.keyChainId', () => ({ trustAnchors: [{ keyChainId: 'access' }] })],
    'two certificates as one anchor': [
      'trustAnchors.0.certificate',
      ({ issuer }) => ({ trustAnchors: [{ certificate: pemOf(issuer) + pemOf(issuer) }] }),
    ],
  };
  for (const [what, [path, changes]] of Object.entries(references)) {
    it(`is rejected with ${what}`, async () => {
      const failure = await failureOf(world.configure(changes(world)));
      expect([failure.code, failure.details.errors?.[0]?.path]).to.deep.equal(['invalid_input', path]);
    });
  }

  it('is rejected with anchors of different keys that have one key identifier', async () => {
    const keyId = '00112233445566778899aabbccddeeff00112233';
    const [first, second] = [await certify({ name: 'First', ca: true, keyId }), await certify({ name: 'Second', ca: true, keyId })];
    const again = await certify({ name: 'First anew', ca: true, keyId, key: first });
    const anchored = (...certified: readonly CertifiedKey[]) =>
      world.configure({ trustAnchors: certified.map((one) => ({ certificate: pem(one) })) });
    const failure = await failureOf(anchored(first, again, second));
    expect([failure.code, failure.details.errors?.[0]?.path]).to.deep.equal(['invalid_input', 'trustAnchors.2']);
    await anchored(first, again);
    await anchored(second);
  });

  it('is rejected with a self-signed access certificate', async () => {
    const { root, ...chain } = await world.keyChain(ACME, 'own', ['access']);
    const selfSigned = { ...chain, active: { ...chain.active, certificates: [root?.certificate ?? ''] } };
    await world.store.forTenant(ACME, ({ keyChains }) => keyChains.add(selfSigned), { by: 'system' });
    const failure = await failureOf(world.configure({ accessKeyChainId: 'own' }));
    expect(failure.details.message).to.include('self-signed');
  });

  // N17
  it('is not used once its access key is removed or expired', async () => {
    await world.configure({ accessKeyChainId: 'access' });
    const body = { response_type: 'uri', requestId: 'card' } as const;
    world.clock.time += 366 * 24 * 3600 * 1000;
    const expired = await failureOf(world.createPresentationRequest.execute(cachedCaller(await world.caller()), body));
    await world.store.forTenant(ACME, ({ keyChains }) => keyChains.remove('access'), { by: 'system' });
    const gone = await failureOf(world.createPresentationRequest.execute(cachedCaller(await world.caller()), body));
    expect([expired.code, gone.code]).to.deep.equal(['invalid_input', 'invalid_input']);
  });

  it('is visible to a restricted client only if it may use it', async () => {
    await world.configure();
    await world.configure({ id: 'hidden' });
    const caller = await world.caller(ACME, ['card']);
    const list = await new ListPresentationConfigurations({}).execute(caller);
    expect(list.map(({ id }) => id)).to.deep.equal(['card']);
    expect((await failureOf(new GetPresentationConfiguration({}).execute(caller, 'hidden'))).code).to.equal('not_found');
    expect((await failureOf(new DeletePresentationConfiguration(world).execute(caller, 'hidden'))).code).to.equal('not_found');
    const body = PresentationConfigurationBody.parse({ id: 'hidden', dcql_query: query({ id: 'card' }) });
    expect((await failureOf(world.saveConfiguration.execute(caller, body))).code).to.equal('forbidden');
  });

  it('keeps the API key of the webhook if the masked value is written back', async () => {
    await world.configure({ webhook: HOOK });
    const tenant = await (await world.caller()).tenant.tenant();
    expect(toConfigurationView(await read(), tenant)).to.include({ accessKeyChainId: null, accessCertId: null });
    expect((await patch({ webhook: { ...HOOK, auth: MASKED } })).webhook).to.deep.equal(HOOK);
    await world.configure({ webhook: { ...HOOK, auth: MASKED } });
    expect((await read()).webhook).to.deep.equal(HOOK);
    const moved = await failureOf(patch({ webhook: { url: 'https://foe.example/', auth: MASKED } }));
    expect(moved.details.errors?.[0]?.path).to.equal('webhook.auth.config.value');
    expect((await patch({ webhook: null })).webhook).to.equal(undefined);
    expect((await failureOf(patch({ webhook: { ...HOOK, auth: MASKED } }))).code).to.equal('invalid_input');
  });

  const list = (serviceType: string) => ({
    trustList: 'https://lists.example/lote',
    signedBy: ['a certificate'],
    serviceTypes: [serviceType],
  });
  /** Entries for one SD-JWT VC with these algorithms. */
  const confirmed = (...algorithms: (string[] | undefined)[]) => ({
    transaction_data: algorithms.map((transaction_data_hashes_alg, index) => ({
      type: `t${index}`,
      credential_ids: ['card'],
      ...(transaction_data_hashes_alg !== undefined && { transaction_data_hashes_alg }),
    })),
  });
  const many = (count: number) => Array.from({ length: count }, (_, i) => `v${i}`);
  const elements = (count: number) => Object.fromEntries(many(count).map((type) => [type, { namespace: 'n', element: 'e' }]));
  /** A query of so many thousand characters. */
  const long = (thousands: number) => {
    const values = many(thousands).map((value) => value.padEnd(1000, 'v'));
    return query({ id: 'card', claims: [{ path: ['name'], values }] });
  };
  const keyIds = (count: number) => Array.from({ length: count }, (_, i) => Buffer.from([i]).toString('base64url'));
  it('is accepted with values that only resemble a fault', () => {
    const mdoc = {
      id: 'mdoc',
      format: 'mso_mdoc',
      meta: { doctype_value: 'd' },
      claims: [{ id: 'constructors', path: ['n', 'constructor'] }],
    };
    const entry = (transaction_data_hashes_alg: string[]) => ({ type: 'x', credential_ids: ['mdoc'], transaction_data_hashes_alg });
    const good: readonly object[] = [
      confirmed(['sha-384', 'sha-256'], undefined, ['sha-256']),
      {
        dcql_query: {
          ...query({ id: 'card' }, mdoc),
          credential_sets: [{ options: [['card']] }, { options: [['mdoc']], required: false }],
        },
        transactionDataElements: { x: { namespace: 'n', element: 'hash' } },
        transaction_data: [entry(['sha-384']), entry(['sha-512'])],
      },
      { expectedOrigins: ['https://shop.example', 'android:apk-key-hash:*'] },
      { expectedOrigins: ['http://localhost:3000', 'http://shop.localhost', 'http://[::1]:8080'] },
      { invocationUri: 'https://wallet.example/present' },
      { invocationUri: 'com.example.wallet://' },
      { clientIdPrefix: 'redirect_uri' },
      { requestUriMethod: 'post' },
      { transactionDataElements: elements(50) },
      { dcql_query: long(64) },
      // Key identifiers are no lists, of which there may be twenty.
      { dcql_query: query({ id: 'card', trusted_authorities: [{ type: 'aki', values: keyIds(21) }] }) },
      { trustAnchors: [list('https://lists.example/types/Diploma/Issuance')] },
    ];
    for (const changes of good) {
      const body = { id: 'card', dcql_query: query({ id: 'card' }), ...changes };
      const read = PresentationConfigurationBody.safeParse(body);
      expect(read.success, read.error?.message).to.equal(true);
    }
  });

  const bodies: Readonly<Record<string, JsonObject>> = {
    // N12
    'a format that is unknown': { dcql_query: query({ id: 'a', format: 'jwt_vc', meta: {}, claims: [{ path: ['n', 'e'] }] }) },
    // N13
    'transaction data without credential_ids': { transaction_data: [{ type: 'x', credential_ids: [] }] },
    // N13
    'transaction data for an unknown query': { transaction_data: [{ type: 'x', credential_ids: ['other'] }] },
    // N14
    'transaction data without holder binding': {
      dcql_query: query({ id: 'card', require_cryptographic_holder_binding: false }),
      transaction_data: [{ type: 'x', credential_ids: ['card'] }],
    },
    'transaction data for a query that no option asks for': {
      dcql_query: { ...query({ id: 'card' }, { id: 'other' }), credential_sets: [{ options: [['card']] }] },
      transaction_data: [{ type: 'x', credential_ids: ['card', 'other'] }],
    },
    'transaction data of one credential without a common algorithm': confirmed(['sha-384'], ['sha-512']),
    'transaction data without a common algorithm where one names none': confirmed(['sha-384'], undefined),
    'transaction data of which every two have another algorithm in common': confirmed(
      ['sha-256', 'sha-384'],
      ['sha-384', 'sha-512'],
      ['sha-512', 'sha-256'],
    ),
    'a query of a name that answers cannot have': { dcql_query: query({ id: 'constructor' }) },
    'a query called prototype': { dcql_query: query({ id: 'prototype' }) },
    'a query called __proto__': { dcql_query: query({ id: '__proto__' }) },
    'a claim of a name that answers cannot have': { dcql_query: query({ id: 'card', claims: [{ id: '__proto__', path: ['name'] }] }) },
    'a wildcard among origins': { expectedOrigins: ['https://*.shop.example'] },
    'a wildcard as origin': { expectedOrigins: ['https://*'] },
    'an origin with a path': { expectedOrigins: ['https://shop.example/'] },
    'an origin in the clear': { expectedOrigins: ['http://shop.example'] },
    'an origin of sockets': { expectedOrigins: ['ws://localhost'] },
    'an invocation by a scheme of a program': { invocationUri: 'ms-settings://' },
    'a request without a signer to be fetched': { clientIdPrefix: 'redirect_uri', requestUriMethod: 'post' },
    'elements for more types than there may be': { transactionDataElements: elements(51) },
    'a query that is too long': { dcql_query: long(66) },
    'more lists than there may be': { dcql_query: query({ id: 'card', trusted_authorities: [{ type: 'etsi_tl', values: many(21) }] }) },
    ...Object.fromEntries(
      ['WalletSolution', 'WRPAC', 'WRPRC'].map((kind) => [
        `a service of ${kind} as issuer of credentials`,
        { trustAnchors: [list(`http://uri.etsi.org/19602/SvcType/${kind}/Issuance`)] },
      ]),
    ),
    // N18
    'a registration certificate of no source': { registrationCert: {} },
    // N18
    'a registration certificate of two sources': { registrationCert: { jwt: 'x', id: 'y' } },
    // N18
    'a registration certificate for a relying party': { registrationCert: { body: { rpId: 'x' } } },
    // N19
    'an attachment without format': { attached: [{ data: {} }] },
    // N19
    'an attachment for no query': { attached: [{ format: 'x', data: {}, credential_ids: [] }] },
    'an attachment for an unknown query': { attached: [{ format: 'x', data: {}, credential_ids: ['other'] }] },
    'a script as redirect': { redirectUri: 'javascript:alert(1)' },
  };
  for (const [what, changes] of Object.entries(bodies)) {
    it(`is rejected with ${what}`, () => {
      const body = { id: 'card', dcql_query: query({ id: 'card' }), ...changes };
      expect(PresentationConfigurationBody.safeParse(body).success).to.equal(false);
    });
  }
});
