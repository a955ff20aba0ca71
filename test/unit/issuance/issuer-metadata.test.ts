import { expect } from 'chai';
import sinon from 'sinon';
import type { MetadataKind } from '../../../application/issuance/issuer-metadata.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import type { JsonObject } from '../../../domain/shared/json.ts';
import { UPSTREAM } from '../../support/fake-authorization-servers.ts';
import { decode, verifiedByLeaf } from '../../support/present.ts';
import { ACME, PUBLIC_URL } from '../verification-flow/kit.ts';
import { anOffer, Wallet } from '../wallet.ts';
import { endOf, failureOf, WalletWorld } from '../wallet-kit.ts';

const ISSUER = `${PUBLIC_URL}/acme`;
const NOBODY = 'nobody' as TenantId;
const PLAIN = { signed: false, languages: [] };

describe('GetIssuerMetadata', () => {
  let world: WalletWorld;

  before(async () => {
    world = await WalletWorld.open();
    await world.offers({ id: 'named', vct: 'urn:named:1', schema: { type: 'object' } });
    const display = ['en', 'de'].map((locale) => ({ name: `Card ${locale}`, locale }));
    await world.offers({ id: 'spoken', config: { format: 'dc+sd-jwt', display } });
  });
  afterEach(() => sinon.restore());

  const read = async (kind: MetadataKind) =>
    JSON.parse(await world.readIssuerMetadata.execute(ACME, kind)) as JsonObject;
  const issuer = (wanted: object = {}, tenantId = ACME) =>
    world.readIssuerMetadata.issuer(tenantId, { ...PLAIN, ...wanted });
  const configurations = (text: string) =>
    JSON.parse(text)['credential_configurations_supported'] as Record<string, JsonObject>;

  it('describes the issuer as it is configured', async () => {
    const { text, signed } = await issuer();
    const document = JSON.parse(text) as JsonObject;
    expect([signed, document['credential_issuer']]).to.deep.equal([false, ISSUER]);
    expect(Object.keys(configurations(text))).to.have.members(['card', 'named', 'spoken']);
    const [key] = world.encryption.requestKeys(ACME);
    expect(text).to.include(key?.publicJwk.kid);
  });

  it('follows what another process configured', async () => {
    await world.offers({ id: 'newest' });
    expect(configurations((await issuer()).text)).to.have.property('newest');
    await world.store.forTenant(ACME, (own) => own.credentialConfigurations.remove('newest'), {
      by: 'system',
    });
    expect(configurations((await issuer()).text)).not.to.have.property('newest');
  });

  it('is signed where that is wanted, and signed anew after half a day', async () => {
    const signed = async () => (await issuer({ signed: true })).text;
    const first = await signed();
    const { header, payload } = decode(first);
    expect(header['typ']).to.equal('openidvci-issuer-metadata+jwt');
    expect(payload).to.include({ sub: ISSUER, iat: world.seconds, exp: world.seconds + 86_400 });
    verifiedByLeaf(first);
    expect(await signed()).to.equal(first);
    expect(await world.later(12 * 3600 - 1, signed)).to.equal(first);
    expect(await world.later(12 * 3600, signed)).not.to.equal(first);
  });

  /** The chains of a tenant as another process would leave them: without any for access. */
  const withoutAccess = (fresh: WalletWorld) =>
    fresh.store.forTenant(
      ACME,
      async ({ keyChains }) => {
        for (const { id, usages } of await keyChains.list())
          if (usages.includes('access')) await keyChains.remove(id);
      },
      { by: 'system' },
    );
  const addAccess = async (fresh: WalletWorld) => {
    const access = await fresh.keyChain(ACME, 'access-new', ['access']);
    await fresh.store.forTenant(ACME, ({ keyChains }) => keyChains.put(access), { by: 'system' });
    return access.active.certificates.slice(0, 1);
  };

  it('is signed with the access certificate, without the anchor (ARF ISSU_22 and ISSU_32)', async () => {
    const fresh = await WalletWorld.open();
    await withoutAccess(fresh);
    const warned = sinon.spy(fresh.log, 'warn');
    const signer = async () => {
      const { text } = await fresh.readIssuerMetadata.issuer(ACME, { ...PLAIN, signed: true });
      return decode(text).header['x5c'];
    };
    const byCredentials = await signer();
    await signer();
    const told = warned.getCalls().filter(({ firstArg }) => /no access certificate/.test(firstArg));
    expect(told).to.have.length(1);
    const access = await addAccess(fresh);
    expect(await signer())
      .to.deep.equal(access)
      .and.not.deep.equal(byCredentials);
  });

  it('is signed by nothing else under the profile eu, where it stands inside the plain form as well', async () => {
    const fresh = await WalletWorld.open();
    await withoutAccess(fresh);
    const read = (wanted: object) => fresh.readIssuerMetadata.issuer(ACME, { ...PLAIN, ...wanted });
    const adopt = () => fresh.change({ profile: 'eu' });
    expect(JSON.parse((await read({})).text)).to.not.have.property('signed_metadata');
    expect(await failureOf(adopt())).to.have.property('code', 'conflict');
    const access = await addAccess(fresh);
    await fresh.store.forTenant(
      ACME,
      async ({ credentialConfigurations, issuanceConfiguration }) => {
        await credentialConfigurations.remove('card');
        await issuanceConfiguration.remove('default');
      },
      { by: 'system' },
    );
    await adopt();
    const { signed_metadata: inside, ...plain } = JSON.parse((await read({})).text);
    verifiedByLeaf(inside);
    expect(decode(inside).header['x5c']).to.deep.equal(access);
    expect(decode(inside).payload).to.deep.include(plain).and.not.have.property('signed_metadata');
    expect(inside).to.equal((await read({ signed: true })).text);
  });

  it('is plain where the tenant has no key that can sign', async () => {
    expect((await world.later(400 * 86_400, () => issuer({ signed: true }))).signed).to.equal(false);
  });

  it('tries again to sign what could not be signed', async () => {
    await world.issues();
    const sign = sinon.stub(world.kms, 'sign').throws(new Error('the key store is away'));
    expect(await issuer({ signed: true }).catch(String)).to.equal('Error: the key store is away');
    sign.restore();
    expect((await issuer({ signed: true })).signed).to.equal(true);
  });

  it('speaks one language where one is asked for', async () => {
    const { text, language } = await issuer({ languages: ['de'] });
    expect(language, 'other lists have only another language').to.equal(undefined);
    expect(text).to.include('Card de').and.not.include('Card en');
  });

  it('shows the keys of access tokens', async () => {
    const token = await new Wallet(world).token(await anOffer(world));
    const { keys } = (await read('jwks')) as { keys: JsonObject[] };
    expect(keys.map(({ kid }) => kid)).to.deep.equal([decode(token).header['kid']]);
    expect(JSON.stringify(keys)).not.to.include('"d"');
  });

  it('describes both authorization servers', async () => {
    const upstream = { issuer: UPSTREAM, clientId: 'vidimus' };
    await world.issues({ chainedAs: { upstream } });
    expect((await read('authorization-server'))['issuer']).to.equal(ISSUER);
    expect((await read('chained-as'))['issuer']).to.equal(`${ISSUER}/chained-as`);
    await world.issues({ chainedAs: { upstream, enabled: false } });
    expect(await endOf(read('chained-as'))).to.equal('not_found');
  });

  it('describes types that the service hosts, and schemas that there are', async () => {
    const { readIssuerMetadata } = world;
    const type = JSON.parse(await readIssuerMetadata.typeMetadata(ACME, 'card')) as JsonObject;
    expect(type['vct']).to.equal(`${ISSUER}/vct/card`);
    expect(JSON.parse(await readIssuerMetadata.schema(ACME, 'named'))).to.deep.equal({ type: 'object' });
  });

  const missing: readonly [what: string, ask: (tenantId: TenantId) => Promise<unknown>, isKnown: boolean][] =
    [
      ['the issuer', (tenantId) => issuer({}, tenantId), false],
      ['a server', (tenantId) => world.readIssuerMetadata.execute(tenantId, 'authorization-server'), false],
      ['keys', (tenantId) => world.readIssuerMetadata.execute(tenantId, 'jwks'), false],
      ['a type', (tenantId) => world.readIssuerMetadata.typeMetadata(tenantId, 'card'), false],
      ['a schema', (tenantId) => world.readIssuerMetadata.schema(tenantId, 'named'), false],
      [
        'a chained server that nobody set up',
        () => world.readIssuerMetadata.execute(ACME, 'chained-as'),
        true,
      ],
      [
        'a type that is described elsewhere',
        () => world.readIssuerMetadata.typeMetadata(ACME, 'named'),
        true,
      ],
      ['a type that is not there', () => world.readIssuerMetadata.typeMetadata(ACME, 'none'), true],
      ['a schema of what has none', () => world.readIssuerMetadata.schema(ACME, 'card'), true],
      ['a schema of what is not there', () => world.readIssuerMetadata.schema(ACME, 'none'), true],
    ];
  for (const [what, ask, isKnown] of missing) {
    it(`does not find ${what}${isKnown ? '' : ' of a tenant that is unknown or suspended'}`, async () => {
      await world.issues();
      expect(await endOf(ask(NOBODY))).to.equal('not_found');
      if (isKnown) return;
      await world.change({ status: 'suspended' });
      expect(await endOf(ask(ACME))).to.equal('not_found');
      await world.change({ status: 'active' });
      expect(await endOf(ask(ACME))).to.equal('done');
    });
  }
});
