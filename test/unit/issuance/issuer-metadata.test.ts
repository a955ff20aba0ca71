import { expect } from 'chai';
import sinon from 'sinon';
import { acceptedTypes, languageRanges, pickEncoding } from '../../../adapters/http/input/negotiation.ts';
import type { MetadataKind } from '../../../application/issuance/issuer-metadata.ts';
import { localeListsOf, narrowTo, onlyLocaleOf, pickLocale } from '../../../domain/issuance/localized-metadata.ts';
import { metadataSigner } from '../../../domain/issuance/metadata-signer.ts';
import type { KeyChain, KeyUsage } from '../../../domain/keys/key-chain.ts';
import { findMissingKeyProblems } from '../../../domain/keys/key-chain-findings.ts';
import type { Profile } from '../../../domain/shared/finding.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import type { JsonObject } from '../../../domain/shared/json.ts';
import { aKeyChain } from '../../contract/store/builders.ts';
import { UPSTREAM } from '../../support/fakes.ts';
import { decode, verifyWithLeaf } from '../../support/present.ts';
import { ACME, PUBLIC_URL } from '../verification/kit.ts';
import { anOffer, endOf, failureOf, Wallet, WalletWorld } from '../wallet-kit.ts';

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

  const read = async (kind: MetadataKind) => JSON.parse(await world.readIssuerMetadata.execute(ACME, kind)) as JsonObject;
  const issuer = (wanted: object = {}, tenantId = ACME) => world.readIssuerMetadata.issuer(tenantId, { ...PLAIN, ...wanted });
  const configurations = (text: string) => JSON.parse(text)['credential_configurations_supported'] as Record<string, JsonObject>;

  it('describes the issuer as configured', async () => {
    const { text, signed } = await issuer();
    const document = JSON.parse(text) as JsonObject;
    expect([signed, document['credential_issuer']]).to.deep.equal([false, ISSUER]);
    expect(Object.keys(configurations(text))).to.have.members(['card', 'named', 'spoken']);
    const [key] = world.encryption.requestKeys(ACME);
    expect(text).to.include(key?.publicJwk.kid);
  });

  it('returns a configuration of another process', async () => {
    await world.offers({ id: 'newest' });
    expect(configurations((await issuer()).text)).to.have.property('newest');
    await world.store.forTenant(ACME, (own) => own.credentialConfigurations.remove('newest'), { by: 'system' });
    expect(configurations((await issuer()).text)).not.to.have.property('newest');
  });

  it('is signed on request, and signed again after half a day', async () => {
    const signed = async () => (await issuer({ signed: true })).text;
    const first = await signed();
    const { header, payload } = decode(first);
    expect(header['typ']).to.equal('openidvci-issuer-metadata+jwt');
    expect(payload).to.include({ sub: ISSUER, iat: world.seconds, exp: world.seconds + 86_400 });
    verifyWithLeaf(first);
    expect(await signed()).to.equal(first);
    expect(await world.later(12 * 3600 - 1, signed)).to.equal(first);
    expect(await world.later(12 * 3600, signed)).not.to.equal(first);
  });

  /** The chains of a tenant as another process would leave them: without any for access. */
  const withoutAccess = (fresh: WalletWorld) =>
    fresh.store.forTenant(
      ACME,
      async ({ keyChains }) => {
        for (const { id, usages } of await keyChains.list()) if (usages.includes('access')) await keyChains.remove(id);
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

  it('is only signed with the access certificate under the profile eu, and is included in the plain form', async () => {
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
    verifyWithLeaf(inside);
    expect(decode(inside).header['x5c']).to.deep.equal(access);
    expect(decode(inside).payload).to.deep.include(plain).and.not.have.property('signed_metadata');
    expect(inside).to.equal((await read({ signed: true })).text);
  });

  it('is unsigned when the tenant has no usable key', async () => {
    expect((await world.later(400 * 86_400, () => issuer({ signed: true }))).signed).to.equal(false);
  });

  it('retries a failed signature', async () => {
    await world.issues();
    const sign = sinon.stub(world.kms, 'sign').throws(new Error('the key store is away'));
    expect(await issuer({ signed: true }).catch(String)).to.equal('Error: the key store is away');
    sign.restore();
    expect((await issuer({ signed: true })).signed).to.equal(true);
  });

  it('uses one language on request', async () => {
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

  it('describes hosted types and schemas', async () => {
    const { readIssuerMetadata } = world;
    const type = JSON.parse(await readIssuerMetadata.typeMetadata(ACME, 'card')) as JsonObject;
    expect(type['vct']).to.equal(`${ISSUER}/vct/card`);
    expect(JSON.parse(await readIssuerMetadata.schema(ACME, 'named'))).to.deep.equal({ type: 'object' });
  });

  const missing: readonly [what: string, ask: (tenantId: TenantId) => Promise<unknown>, isKnown: boolean][] = [
    ['the issuer', (tenantId) => issuer({}, tenantId), false],
    ['a server', (tenantId) => world.readIssuerMetadata.execute(tenantId, 'authorization-server'), false],
    ['keys', (tenantId) => world.readIssuerMetadata.execute(tenantId, 'jwks'), false],
    ['a type', (tenantId) => world.readIssuerMetadata.typeMetadata(tenantId, 'card'), false],
    ['a schema', (tenantId) => world.readIssuerMetadata.schema(tenantId, 'named'), false],
    ['a chained server that nobody set up', () => world.readIssuerMetadata.execute(ACME, 'chained-as'), true],
    ['a type that is described elsewhere', () => world.readIssuerMetadata.typeMetadata(ACME, 'named'), true],
    ['a type that is not there', () => world.readIssuerMetadata.typeMetadata(ACME, 'none'), true],
    ['a schema of what has none', () => world.readIssuerMetadata.schema(ACME, 'card'), true],
    ['a schema of what is not there', () => world.readIssuerMetadata.schema(ACME, 'none'), true],
  ];
  for (const [what, ask, isKnown] of missing) {
    it(`returns no ${what}${isKnown ? '' : ' of a tenant that is unknown or suspended'}`, async () => {
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

const chain = (id: string, usages: readonly KeyUsage[], notAfter = '2030-01-01'): KeyChain => {
  const whole = aKeyChain('acme' as never, id);
  return { ...whole, usages, active: { ...whole.active, notAfter: new Date(notAfter) } };
};
const NOW = new Date('2026-06-01');
const signing = chain('signing', ['signing']);
const access = chain('access', ['access']);
const over = chain('over', ['access'], '2026-05-31');

describe('signer of issuer metadata', () => {
  const cases: [string, readonly KeyChain[], Profile | null, string | undefined][] = [
    ['the access certificate', [signing, access], null, 'access'],
    ['that of credentials without one', [signing], null, 'signing'],
    ['that of credentials once the other ended', [over, signing], 'haip', 'signing'],
    ['nobody without either', [chain('lists', ['trustList'])], null, undefined],
    ['the access certificate for European wallets', [signing, access], 'eu', 'access'],
    ['nobody else for them', [over, signing], 'eu', undefined],
  ];
  for (const [what, chains, profile, id] of cases) {
    it(`is ${what}`, () => {
      expect(metadataSigner(chains, profile, NOW)?.id).to.equal(id);
    });
  }

  it('is required by the profile', () => {
    expect(findMissingKeyProblems([signing], 'eu')).to.have.length(1);
    expect(findMissingKeyProblems([signing, access], 'eu')).to.deep.equal([]);
    expect(findMissingKeyProblems([], 'haip')).to.deep.equal([]);
  });
});

const JSON_FORM = { names: ['application/json'] };
const JWT_FORM = { names: ['application/jwt'] };
const takenOf = (accept: string | undefined) => acceptedTypes(accept, [JSON_FORM, JWT_FORM]);

describe('signed metadata', () => {
  const wanted = [
    'application/jwt',
    'Application/JWT',
    'application/jwt;q=0.1',
    'application/jwt, application/json',
    'application/jwt, */*;q=0.5',
    'application/json;q=0.9, application/jwt',
    'text/html, application/jwt;q=0.8, application/*;q=0.7',
    'application/jwt;charset=utf-8;q=1.000',
    'application/json;q=0.5, application/*',
    'application/json;q=0, */*',
  ];
  for (const accept of wanted) {
    it(`are sent for ${accept}`, () => expect(takenOf(accept)[0]).to.equal(JWT_FORM));
  }

  const unwanted = [
    undefined,
    '',
    '*/*',
    'application/*',
    'application/json',
    'application/xml',
    'application/jwt;q=0',
    'application/jwt;q=0.0, */*;q=0.1',
    'application/json, application/jwt',
    'application/jwt;q=0.5, application/json',
    'application/jwt;q=0.5, */*',
    'application/jwt;q=2',
    'application/jwt;q=',
    'application/jwtx',
    `${'x/y,'.repeat(1000)}application/jwt`,
  ];
  for (const accept of unwanted) {
    it(`are not sent for ${accept?.slice(0, 50)}`, () => expect(takenOf(accept)[0]).to.not.equal(JWT_FORM));
  }
});

describe('Accept header', () => {
  const STATUS_JWT = { names: ['application/statuslist+jwt', 'application/jwt'] };
  const STATUS_CWT = { names: ['application/statuslist+cwt', 'application/cwt'] };
  const cases: [string | undefined, readonly object[]][] = [
    [undefined, [STATUS_JWT, STATUS_CWT]],
    ['  ', [STATUS_JWT, STATUS_CWT]],
    ['*/*', [STATUS_JWT, STATUS_CWT]],
    ['application/statuslist+cwt, application/statuslist+jwt;q=0.1', [STATUS_CWT, STATUS_JWT]],
    ['application/statuslist+jwt;q=0.1, application/statuslist+cwt', [STATUS_CWT, STATUS_JWT]],
    ['application/statuslist+cwt;q=0.2, application/statuslist+jwt;q=0.3', [STATUS_JWT, STATUS_CWT]],
    ['application/statuslist+cwt, application/statuslist+jwt', [STATUS_CWT, STATUS_JWT]],
    ['application/statuslist+cwt, */*', [STATUS_CWT, STATUS_JWT]],
    ['*/*, application/statuslist+cwt;q=0.9', [STATUS_JWT, STATUS_CWT]],
    ['*/*, application/statuslist+jwt;q=0', [STATUS_CWT]],
    ['*/*;q=0, application/*', [STATUS_JWT, STATUS_CWT]],
    ['application/jwt, application/statuslist+jwt;q=0', []],
    ['application/cwt', [STATUS_CWT]],
    ['text/*, application/json', []],
    ['application/statuslist+cwt;q=nan', []],
    [`${'x/y,'.repeat(1000)}*/*`, []],
  ];
  for (const [accept, expected] of cases) {
    it(`yields ${expected.length} media types for ${accept?.slice(0, 80)}, the best one first`, () => {
      expect(acceptedTypes(accept, [STATUS_JWT, STATUS_CWT])).to.deep.equal(expected);
    });
  }
});

describe('content encoding', () => {
  const cases: [string | undefined, string | undefined][] = [
    [undefined, undefined],
    ['', undefined],
    ['identity', undefined],
    ['deflate, zstd', undefined],
    ['gzip', 'gzip'],
    ['X-GZIP', 'gzip'],
    ['gzip, deflate, br', 'br'],
    ['br;q=0.2, gzip;q=0.8', 'gzip'],
    ['br;q=0.8, gzip;q=0.2', 'br'],
    ['*', 'br'],
    ['br;q=0, *', 'gzip'],
    ['*;q=0', undefined],
    ['gzip;q=0, br;q=0', undefined],
    ['identity, gzip;q=0.5', undefined],
    ['identity;q=0.5, gzip;q=0.5', 'gzip'],
    ['gzip;q=7', undefined],
    [`${'x,'.repeat(2000)}gzip`, undefined],
  ];
  for (const [header, expected] of cases) {
    it(`is ${expected ?? 'none'} for ${header?.slice(0, 50)}`, () => {
      expect(pickEncoding(header)).to.equal(expected);
    });
  }
});

describe('metadata language', () => {
  const LOCALES = ['en', 'de-AT', 'de-CH', 'fr-FR', 'zh-Hant'];
  const cases: [string | undefined, string | undefined][] = [
    ['en', 'en'],
    ['EN-us', 'en'],
    ['de-at', 'de-AT'],
    ['de', 'de-AT'],
    ['fr-CA', undefined],
    ['fr', 'fr-FR'],
    ['zh-Hant-TW', 'zh-Hant'],
    ['es, de-CH;q=0.9, en;q=0.8', 'de-CH'],
    ['en;q=0.5, fr-FR', 'fr-FR'],
    ['es, *', undefined],
    ['*', undefined],
    ['en;q=0, fr', 'fr-FR'],
    ['es', undefined],
    [undefined, undefined],
    ['--', undefined],
  ];
  for (const [header, expected] of cases) {
    it(`is ${expected ?? 'every one'} for ${header}`, () => {
      expect(pickLocale(LOCALES, languageRanges(header))).to.equal(expected);
    });
  }

  const METADATA: JsonObject = {
    display: [{ name: 'Acme', locale: 'en' }, { name: 'Acme GmbH', locale: 'de' }, { name: 'no language' }],
    credential_configurations_supported: {
      display: {
        credential_metadata: {
          display: [{ name: 'Carte', locale: 'fr' }],
          claims: [
            {
              path: ['a', null],
              display: [
                { name: 'A', locale: 'de' },
                { name: 'B', locale: 'en' },
              ],
            },
          ],
        },
      },
    },
  };

  it('is one of the available languages', () => {
    expect(localeListsOf(METADATA)).to.deep.equal([['en', 'de'], ['fr'], ['de', 'en']]);
    expect(localeListsOf({ display: [{ name: 'Acme', locale: 7 }, 'Acme'] })).to.deep.equal([[]]);
    expect(pickLocale(['de', 'en'], ['fr', '*', 'de']), 'any will do').to.equal(undefined);
  });

  it('omits other languages, unless there is nothing else', () => {
    const narrowed = narrowTo(METADATA, ['de']);
    expect(onlyLocaleOf(narrowed)).to.equal(undefined);
    expect(narrowed).to.deep.equal({
      display: [{ name: 'Acme GmbH', locale: 'de' }],
      credential_configurations_supported: {
        display: {
          credential_metadata: {
            display: [{ name: 'Carte', locale: 'fr' }],
            claims: [{ path: ['a', null], display: [{ name: 'A', locale: 'de' }] }],
          },
        },
      },
    });
  });

  it('is selected in each list, so that en finds en-US in one and en-GB in another', () => {
    const lists = (office: readonly string[], card: readonly string[]) => ({
      display: office.map((locale) => ({ locale })),
      card: { display: card.map((locale) => ({ locale })) },
    });
    const all = lists(['de-DE', 'en-US'], ['de', 'en-GB']);
    for (const [ranges, office, card, language] of [
      [['en'], 'en-US', 'en-GB', undefined],
      [['de'], 'de-DE', 'de', undefined],
      [['en-GB', 'en'], 'en-US', 'en-GB', undefined],
    ] as const) {
      const narrowed = narrowTo(all, ranges);
      expect(narrowed).to.deep.equal(lists([office], [card]));
      expect(onlyLocaleOf(narrowed)).to.equal(language);
    }
    expect(narrowTo(all, ['fr'])).to.deep.equal(all);
    expect(onlyLocaleOf(narrowTo(lists(['de', 'en'], ['en']), ['en']))).to.equal('en');
  });
});
