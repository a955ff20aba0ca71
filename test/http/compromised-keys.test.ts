import { expect } from 'chai';
import { reportSharedKeys } from '../../application/keys/compromised-key.ts';
import { RenewKeyChains } from '../../application/keys/renew-key-chains.ts';
import { WalletTokens } from '../../application/oauth/wallet-tokens.ts';
import { Store } from '../../application/ports/store.ts';
import { TenantConfigurations } from '../../application/tenant-cache/tenant-configurations.ts';
import { tdate } from '../../domain/formats/cbor/values.ts';
import { parseCrl } from '../../domain/formats/der/crl.ts';
import { RevokedEntries } from '../../domain/formats/der/crl-entries.ts';
import { parsePemCertificates } from '../../domain/formats/der/pem.ts';
import { revocationSourcesOf } from '../../domain/formats/der/revocation-sources.ts';
import type { KeyChain } from '../../domain/keys/key-chain.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { type PublicJwk, thumbprint } from '../../domain/shared/jwk.ts';
import { type HolderKey, makeJwt, newKey, now } from '../support/raw-wallet.ts';
import { certify, DOCUMENT_SIGNER, pem } from '../support/test-certificates.ts';
import { CARD_QUERY, LICENCE_QUERY, openWorld, type World } from './negative-verification/world.ts';

const pkcs8 = (key: HolderKey) => key.privateKey.export({ format: 'pem', type: 'pkcs8' });

/** Certificates of the service begin later than the default signing time of the test mdocs. */
const validNow = () => {
  const signed = tdate(new Date());
  return { signed, validFrom: signed, validUntil: tdate(new Date(Date.now() + 3_600_000)) };
};

describe('a compromised public key', () => {
  let world: World;
  let key: HolderKey;
  let keyIndex = 0;

  before(async () => {
    world = await openWorld();
  });
  after(() => world.close());
  beforeEach(() => {
    key = newKey();
    keyIndex++;
  });

  const id = (name: string) => `${name}-${keyIndex}`;
  const create = async (path: string, json: object, tenant: 'shop' | 'rival' = 'shop') => {
    const answer = await world.admin('POST', path, json, tenant);
    expect(answer.status, answer.text).to.equal(201);
    return answer.body;
  };
  const createKey = (name: string, changes: object = {}, tenant: 'shop' | 'rival' = 'shop') =>
    create('/key-chain/import', { id: id(name), usages: ['signing'], key: pkcs8(key), ...changes }, tenant);
  const chain = async (name: string, tenant = 'shop'): Promise<KeyChain> =>
    world.service.service.container.get(Store).forTenant(tenant as TenantId, ({ keyChains }) => keyChains.get(id(name)));
  const compromise = async (name: string) => {
    const answer = await world.admin('POST', `/key-chain/${id(name)}/rotate`, { compromised: true });
    expect(answer.status, answer.text).to.equal(200);
    return answer.body.affectedKeyChains as readonly { id: string; outcome: string; reason: string | null }[];
  };
  const outcomes = (affected: readonly { id: string; outcome: string }[]) =>
    Object.fromEntries(affected.map((one) => [one.id, one.outcome]));
  const published = async () =>
    (await world.service.call('GET', '/shop/.well-known/jwks.json')).body.keys.map(({ kid }: { kid: string }) => kid);
  const revocation = async (certificate: string) => {
    const { points, serial } = revocationSourcesOf(certificate);
    const answer = await fetch(points[0]?.[0] ?? '');
    expect(answer.status).to.equal(200);
    const list = parseCrl(Buffer.from(await answer.arrayBuffer()));
    return new RevokedEntries(list.entries).find(serial)?.reason;
  };
  const leaves = ({ active }: KeyChain) => [active.certificates[0] ?? '', ...(active.documentSigner ?? [])];
  const acceptsToken = async () => {
    const { container } = world.service.service;
    const configurations = await container.get(TenantConfigurations).readStored('shop' as TenantId);
    if (configurations === undefined) throw new Error('no tenant');
    const payload = {
      ...{ iss: configurations.issuer, aud: configurations.issuer, sub: 's', jti: 'j', issuer_state: 'p', grant_id: 'g' },
      ...{ iat: now(), exp: now() + 60, credential_configuration_ids: [] },
    };
    const header = { typ: 'at+jwt', alg: 'ES256', kid: thumbprint(key.jwk as PublicJwk) };
    return (await container.get(WalletTokens).verify(configurations, makeJwt(key, header, payload))) !== undefined;
  };

  it('is removed from the JWKS and from token verification, and each certificate for it is revoked', async () => {
    await createKey('first');
    await createKey('twin');
    await create('/certs', { id: id('second'), keyId: id('first'), certUsageTypes: ['signing'] });
    await create('/certs', { id: id('gone'), keyId: id('first'), certUsageTypes: ['signing'] });
    const before = [await chain('first'), await chain('twin'), await chain('second'), await chain('gone')];
    expect((await world.admin('DELETE', `/certs/${id('gone')}`)).status).to.equal(200);
    expect(await published()).to.include(thumbprint(key.jwk as PublicJwk));
    expect(await acceptsToken()).to.equal(true);

    expect(outcomes(await compromise('first'))).to.deep.equal({
      [id('first')]: 'rotated',
      [id('second')]: 'rotated',
      [id('twin')]: 'rotated',
    });
    expect(await published()).to.not.include(thumbprint(key.jwk as PublicJwk));
    expect(await acceptsToken()).to.equal(false);
    for (const certificate of before.flatMap(leaves)) {
      expect(await revocation(certificate)).to.equal('keyCompromise');
    }
    for (const name of ['first', 'second', 'twin']) {
      for (const certificate of leaves(await chain(name))) expect(await revocation(certificate)).to.equal(undefined);
    }
  });

  it('revokes the certificate from before a renewal as well', async () => {
    await createKey('first');
    const before = await chain('first');
    const nearExpiry = new Date(before.active.notAfter.getTime() - 3 * 24 * 3_600_000);
    await world.service.service.container.get(RenewKeyChains).renew('shop' as TenantId, nearExpiry);
    const renewedChain = await chain('first');
    expect(renewedChain.active.key).to.deep.equal(before.active.key);
    await compromise('first');
    for (const certificate of [before, renewedChain].flatMap(leaves)) {
      expect(await revocation(certificate)).to.equal('keyCompromise');
    }
    expect(await published()).to.not.include(thumbprint(key.jwk as PublicJwk));
  });

  it('of a former leaf marks the key chain that still signs with it', async () => {
    await createKey('first');
    await create('/certs', { id: id('second'), keyId: id('first'), certUsageTypes: ['signing'] });
    const second = await chain('second');
    expect((await world.admin('POST', `/key-chain/${id('first')}/rotate`, {})).status).to.equal(200);
    expect(outcomes(await compromise('second'))).to.deep.equal({ [id('first')]: 'former', [id('second')]: 'rotated' });
    expect(await published()).to.not.include(thumbprint(key.jwk as PublicJwk));
    for (const certificate of leaves(second)) expect(await revocation(certificate)).to.equal('keyCompromise');
  });

  it('with external certificates signs nothing any more, and can never be imported again', async () => {
    const ca = await certify({ name: 'Elsewhere', ca: true });
    const leaf = await certify({ name: 'Leaf', by: ca, key, ...DOCUMENT_SIGNER });
    await createKey('brought', { certificates: pem(leaf) });
    const [affectedChain] = await compromise('brought');
    expect(affectedChain).to.include({ id: id('brought'), outcome: 'blocked' });
    expect(affectedChain?.reason).to.match(/come from an external authority/);
    const shownChain = await world.admin('GET', `/key-chain/${id('brought')}`);
    expect(shownChain.body.compromisedAt).to.be.a('string');
    expect(await published()).to.not.include(thumbprint(key.jwk as PublicJwk));
    expect(await acceptsToken()).to.equal(false);
    const request = await world.admin('POST', `/key-chain/${id('brought')}/csr`, {});
    expect([request.status, request.text]).to.satisfy(([status, body]: [number, string]) => status === 409 && /compromised/.test(body));
    const card = { vct: 'urn:x:1', format: 'dc+sd-jwt', id: id('card'), keyChainId: id('brought'), fields: [] };
    const configuration = await world.admin('POST', '/issuer/credentials', card);
    expect(configuration.status, configuration.text).to.equal(400);

    const importBody = { id: id('again'), usages: ['signing'], key: pkcs8(key) };
    const expectRejected = async () => {
      const { status, text: body } = await world.admin('POST', '/key-chain/import', importBody);
      return [status, /marked as compromised/.test(body)];
    };
    expect(await expectRejected()).to.deep.equal([400, true]);
    expect((await world.admin('DELETE', `/key-chain/${id('brought')}`)).status).to.equal(200);
    expect(await expectRejected()).to.deep.equal([400, true]);
    expect(await acceptsToken()).to.equal(false);
  });

  for (const [format, query] of [
    ['card', CARD_QUERY],
    ['licence', LICENCE_QUERY],
  ] as const) {
    it(`signs no ${format} that a verifier of any tenant accepts`, async () => {
      await createKey('issuer');
      const { active, root } = await chain('issuer');
      const certificates = format === 'licence' ? active.documentSigner : active.certificates;
      const anchor = `-----BEGIN CERTIFICATE-----\n${root?.certificate ?? ''}\n-----END CERTIFICATE-----\n`;
      expect(parsePemCertificates(anchor, 1)).to.have.lengthOf(1);
      const present = async (tenant: 'shop' | 'rival') => {
        const request = await world.ask(
          { dcql_query: { credentials: [query] }, trustAnchors: [{ certificate: anchor }], certificateRevocation: 'off' },
          tenant,
        );
        const issuer = { key, chain: [certificates?.[0] ?? ''] };
        const text =
          format === 'card'
            ? world.card(request, { issuer })
            : world.licence(request, { issuer, mso: (mso) => mso.set('validityInfo', validNow()) });
        await world.answer(request, { [format]: [text] });
        const { status, failure } = await world.session(request, tenant);
        return status === 'completed' ? status : failure.message;
      };
      expect(await present('shop')).to.equal('completed');
      expect(await present('rival')).to.equal('completed');
      await compromise('issuer');
      expect(await present('shop')).to.include('certificate_revoked');
      expect(await present('rival')).to.include('certificate_revoked');
    });
  }

  /** Certificate of the signer of a JWS that the service publishes, DER in standard base64. */
  const signerIn = (text: string): string => JSON.parse(Buffer.from(text.split('.')[0] ?? '', 'base64url').toString()).x5c[0];
  const certificateOf = async (name: string) => (await chain(name)).active.certificates[0] ?? '';

  it('signs no request object that is fetched afterwards, also for earlier sessions', async () => {
    await createKey('access', { usages: ['access'] });
    const previous = await certificateOf('access');
    const body = { id: id('ask'), dcql_query: { credentials: [CARD_QUERY] }, accessKeyChainId: id('access') };
    await create('/verifier/config', body);
    const createRequestUri = async () =>
      new URL((await create('/verifier/offer', { response_type: 'uri', requestId: id('ask') })).uri).searchParams.get('request_uri') ?? '';
    const [fetchedUri, unfetchedUri] = [await createRequestUri(), await createRequestUri()];
    const before = await world.service.call('GET', fetchedUri);
    expect([before.status, signerIn(before.text)]).to.deep.equal([200, previous]);
    await compromise('access');
    for (const address of [fetchedUri, unfetchedUri]) {
      const answer = await world.service.call('GET', address);
      if (answer.status === 200) expect(signerIn(answer.text)).to.not.equal(previous);
      else expect(answer.status, answer.text).to.be.oneOf([404, 410]);
    }
    const laterResponse = await world.service.call('GET', await createRequestUri());
    expect([laterResponse.status, signerIn(laterResponse.text)]).to.deep.equal([200, await certificateOf('access')]);
  });

  it('signs no status list that is fetched half a second later', async () => {
    await createKey('list', { usages: ['statusList'] });
    const previous = await certificateOf('list');
    const { uri } = await create('/status-lists', { certId: id('list') });
    const fetchList = async (accept: string) => world.service.call('GET', uri, { headers: { Accept: accept } });
    expect(signerIn((await fetchList('application/statuslist+jwt')).text)).to.equal(previous);
    await compromise('list');
    // A process checks twice a second whether a list has changed.
    let answer = await fetchList('application/statuslist+jwt');
    while (signerIn(answer.text) === previous) answer = await fetchList('application/statuslist+jwt');
    expect([answer.status, signerIn(answer.text)]).to.deep.equal([200, await certificateOf('list')]);
  });

  it('signs no trust list that is fetched afterwards', async () => {
    await createKey('trust', { usages: ['trustList'] });
    const previous = await certificateOf('trust');
    await create('/trust-list', { id: id('issuers'), keyChainId: id('trust'), entities: [] });
    const fetchList = () => world.service.call('GET', `/shop/trust-list/${id('issuers')}`);
    expect(signerIn((await fetchList()).text)).to.equal(previous);
    await compromise('trust');
    const answer = await fetchList();
    expect([answer.status, signerIn(answer.text)]).to.deep.equal([200, await certificateOf('trust')]);
  });

  it('is reported to the operator, not to the tenants, when another tenant signs with it', async () => {
    await createKey('first');
    await createKey('first', {}, 'rival');
    const affectedChains = await compromise('first');
    expect(JSON.stringify(affectedChains)).to.not.include('rival');
    expect(await reportSharedKeys(world.service.service.container.get(RenewKeyChains)['ports'])).to.equal(1);
    expect((await world.admin('GET', `/key-chain/${id('first')}`, undefined, 'rival')).body.compromisedAt).to.equal(null);
  });
});
