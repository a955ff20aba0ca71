import { generateKeyPairSync, hash } from 'node:crypto';
import { expect } from 'chai';
import { GetIssuanceConfiguration, ReplaceIssuanceConfiguration } from '../../../application/issuance/issuance-configurations.ts';
import { ListSigners } from '../../../application/trust-lists/list-signers.ts';
import { CreateTrustList } from '../../../application/trust-lists/trust-lists.ts';
import {
  effectiveIssuance,
  type IssuanceConfiguration,
  IssuanceConfigurationBody,
  isPreferredServerAvailable,
  WalletClient,
  withDefaults,
} from '../../../domain/issuance/issuance-configuration.ts';
import { keepWalletListPins } from '../../../domain/issuance/wallet-list-pins.ts';
import { registrationOf } from '../../../domain/issuance/wallet-provider.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import { parseInput } from '../../../domain/shared/parse-input.ts';
import { TrustListReplacement } from '../../../domain/trust-lists/list-configuration.ts';
import { newKey } from '../../support/raw-wallet.ts';
import { type CertifiedKey, certify, pem } from '../../support/test-certificates.ts';
import { trustList } from '../../support/trust-list.ts';
import { signXml, xmlList } from '../../support/xml-list.ts';
import { ACME, type AdministrationWorld, anAdministration, endOf } from '../administrators.ts';
import { anIssuance, DISPLAY, ISSUER } from './kit.ts';

describe('issuance configuration', () => {
  it('that was stored without a new property has its default, and keeps its values', () => {
    const time = new Date('2026-01-01T00:00:00Z');
    const stored = {
      id: 'default',
      display: [{ name: 'Acme', locale: 'en' }],
      batchSize: 7,
      dPopRequired: false,
      createdAt: time,
      updatedAt: time,
    } as unknown as IssuanceConfiguration;
    expect(effectiveIssuance(withDefaults(stored), null)).to.deep.equal({ ...anIssuance(), ...stored });
    expect(withDefaults(stored)).to.deep.include({ batchSize: 7, authServers: [], requestEncryption: 'optional' });
  });

  it('follows its profile regardless of the stored values, including the chained server', () => {
    const upstream = { issuer: 'https://login.example', clientId: 'c' };
    const stored = (chainedAs: object | null) =>
      effectiveIssuance(
        IssuanceConfigurationBody.parse({ ...{ display: DISPLAY, dPopRequired: false, chainedAs }, attestationChallenge: 'optional' }),
        'haip',
      );
    const { chainedAs, ...bound } = stored({ requireDPoP: false, upstream });
    expect(bound).to.include({ walletAttestationRequired: true, dPopRequired: true, dPopNonce: 'required' });
    expect(bound.attestationChallenge).to.equal('required');
    expect(chainedAs).to.deep.include({ requireDPoP: true });
    expect(stored(null).chainedAs).to.equal(null);
  });

  const client = { client_id: 'wallet', jwks_uri: 'https://wallet.example/keys' };
  const faults: readonly [string, object, string][] = [
    ['a client twice', { walletClients: [client, client] }, 'walletClients'],
    ['no server at all', { builtInAs: { enabled: false } }, 'builtInAs'],
    ['answers that are encrypted to nobody', { responseEncryption: 'required' }, 'responseEncryption'],
  ];
  for (const [what, changes, path] of faults) {
    it(`is rejected with ${what}`, () => {
      const { error } = IssuanceConfigurationBody.safeParse({ display: DISPLAY, ...changes });
      expect(error?.issues.map((issue) => issue.path.join('.'))).to.deep.equal([path]);
    });
  }

  it('may have several clients, only an external server, and only encrypted messages', () => {
    const walletClients = [client, { ...client, client_id: 'other' }];
    const encrypted = { requestEncryption: 'required', responseEncryption: 'required' };
    const elsewhere = { authServers: ['https://as.example'], builtInAs: { enabled: false } };
    for (const changes of [{ walletClients }, encrypted, elsewhere]) {
      const { error } = IssuanceConfigurationBody.safeParse({ display: DISPLAY, ...changes });
      expect(error?.issues).to.equal(undefined);
    }
  });

  it('has an existing preferred server, if any', () => {
    const known = (preferredAuthServer: string | null | undefined) =>
      isPreferredServerAvailable(ISSUER, { ...anIssuance({ authServers: ['https://as.example'] }), preferredAuthServer });
    expect([null, undefined, 'built-in', ISSUER, 'https://as.example'].map(known)).to.deep.equal(Array(5).fill(true));
    expect(known('https://else.example')).to.equal(false);
  });

  it('keeps the pinned signers of its lists of wallet providers, unless they are given or a list is removed', () => {
    const of = (walletProviderTrustLists: string[], ...walletProviderTrustListCertificates: string[]) => ({
      walletProviderTrustLists,
      walletProviderTrustListCertificates,
    });
    const before = of(['a', 'b'], 'pin');
    const kept = (...given: Parameters<typeof of>) => keepWalletListPins(of(...given), before).walletProviderTrustListCertificates;
    expect(kept(['b', 'a', 'c'])).to.deep.equal(['pin']);
    expect(kept(['a', 'b'], 'other')).to.deep.equal(['other']);
    expect(kept(['a'])).to.deep.equal([]);
    expect(keepWalletListPins(of(['a']), undefined)).to.deep.equal(of(['a']));
    expect(keepWalletListPins(of([]), of([], 'pin'))).to.deep.equal(of([]));
  });
});

describe('registered wallet client', () => {
  const jwkOf = (key: object) => ({ client_id: 'wallet', jwks: { keys: [key] } });
  const takes = (key: object) => WalletClient.safeParse(jwkOf(key)).success;
  const { jwk } = newKey();
  const edwards = generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' });

  it('has keys for its algorithms', () => {
    for (const key of [jwk, { ...jwk, alg: 'ES256', use: 'sig' }, edwards]) expect(takes(key)).to.equal(true);
    for (const alg of ['EdDSA', 'Ed25519']) expect(takes({ ...edwards, alg }), alg).to.equal(true);
  });

  it('has no keys for other algorithms', () => {
    for (const alg of ['EdDSA', 'Ed25519', 'ES384', 'none']) expect(takes({ ...jwk, alg }), alg).to.equal(false);
    for (const key of [
      { ...jwk, use: 'enc' },
      { ...jwk, d: 'x' },
      { ...edwards, alg: 'ES256' },
    ]) {
      expect(takes(key)).to.equal(false);
    }
  });
});

describe('registered wallet provider', () => {
  let root: CertifiedKey;
  let leaf: CertifiedKey;
  let other: CertifiedKey;
  before(async () => {
    root = await certify({ name: 'Root', ca: true });
    leaf = await certify({ name: 'Leaf', by: root });
    other = await certify({ name: 'Other', ca: true });
  });
  const found = (registered: CertifiedKey, clientId = 'wallet') => {
    const redirect_uris = ['https://wallet.example/cb'];
    const provider = { certificates: [pem(registered)], client_ids: ['wallet'], redirect_uris };
    const anchor = hash('sha256', Buffer.from(root.certificate, 'base64'), 'base64url');
    return registrationOf([provider], clientId, { chain: [leaf.certificate], anchor })?.redirectUris;
  };

  it('is identified by the signing certificate, or by that of its authority', () => {
    expect(found(leaf)).to.deep.equal(['https://wallet.example/cb']);
    expect(found(root)).to.deep.equal(['https://wallet.example/cb']);
  });

  it('has unique names', () => {
    expect(found(other)).to.equal(undefined);
    expect(found(other, 'another wallet')).to.deep.equal([]);
  });
});

const UPSTREAM = { issuer: 'https://login.example', clientId: 'vidimus', clientSecret: 'a secret of ours' };
const CHAINED_SERVER = 'https://id.example/base/acme/chained-as';
const EXTERNAL = 'https://as.example';
const PEM_OF_NOTHING = '-----BEGIN CERTIFICATE-----\nMAMCAQE=\n-----END CERTIFICATE-----\n';
const BAD_KEYS: [string, object][] = [
  ['is private', { ...newKey().jwk, d: 'AA' }],
  ['is of a kind that signs nothing here', { kty: 'RSA', n: 'AQAB', e: 'AQAB' }],
  ['is of an unknown curve', { ...newKey().jwk, crv: 'secp256k1' }],
  ['is for another algorithm', { ...newKey().jwk, alg: 'ES384' }],
  ['is for encryption', { ...newKey().jwk, use: 'enc' }],
  ['is symmetric', { kty: 'oct', k: 'AA' }],
];
const WALLET = { client_id: 'wallet', jwks_uri: 'https://wallet.example/jwks' };

describe('issuance configuration of a tenant', () => {
  const DISPLAY = [{ name: 'Acme', locale: 'en' }];

  let world: AdministrationWorld;
  const caller = () => world.caller(['issuance:manage']);
  const get = () => new GetIssuanceConfiguration(world).execute(caller());
  const put = (changes: object = {}) =>
    new ReplaceIssuanceConfiguration(world).execute(caller(), IssuanceConfigurationBody.parse({ display: DISPLAY, ...changes }));
  const stored = () => world.store.forTenant(ACME, (own) => own.issuanceConfiguration.find('default'));

  beforeEach(async () => {
    world = await anAdministration();
  });

  it('is created from defaults and stored at the first read', async () => {
    const first = await get();
    expect(first).to.deep.include({ id: 'default', batchSize: 1, dPopRequired: true, display: DISPLAY });
    world.clock.forward(1_000);
    expect(await get()).to.deep.equal(first);
    expect(await stored()).to.deep.equal(first);
  });

  it('is replaced entirely', async () => {
    const { createdAt } = await put({ batchSize: 7, dPopRequired: false });
    world.clock.forward(1_000);
    const replaced = await put({ refreshTokenSeconds: 0 });
    expect(replaced).to.include({ batchSize: 1, dPopRequired: true, refreshTokenSeconds: 0 });
    expect([replaced.createdAt, replaced.updatedAt]).to.deep.equal([createdAt, world.clock.now()]);
    expect(await get()).to.deep.equal(replaced);
  });

  it('keeps the secret of the upstream provider behind its placeholder only', async () => {
    await put({ chainedAs: { upstream: UPSTREAM } });
    const kept = await put({ chainedAs: { upstream: { ...UPSTREAM, clientSecret: '***' } } });
    expect(kept.chainedAs?.upstream).to.include(UPSTREAM);
    const moved = { ...UPSTREAM, issuer: 'https://other.example', clientSecret: '***' };
    expect(await endOf(put({ chainedAs: { upstream: moved } }))).to.equal('invalid_input chainedAs.upstream.clientSecret');
  });

  const chainedAs = { upstream: UPSTREAM };
  const accepted: [string, object][] = [
    ['the built-in server preferred', { preferredAuthServer: 'built-in' }],
    ['an external server preferred', { authServers: [EXTERNAL], preferredAuthServer: EXTERNAL }],
    ['the chained server preferred', { chainedAs: { ...chainedAs, enabled: true }, preferredAuthServer: CHAINED_SERVER }],
    ['a key chain that signs', { signingKeyId: 'signing' }],
    ['a key chain that signs tokens of the chained server', { chainedAs: { ...chainedAs, token: { signingKeyId: 'signing' } } }],
    ['a wallet with keys at an address', { walletClients: [WALLET] }],
  ];
  for (const [what, changes] of accepted) {
    it(`may have ${what}`, async () => {
      expect(await endOf(put(changes))).to.equal('done');
    });
  }

  describe('with lists of wallet providers', () => {
    const [FIRST, SECOND] = ['https://lists.example/1.jwt', 'https://lists.example/2.jwt'];
    let operator: CertifiedKey;
    let served: Map<string, string>;
    let calls: string[];
    const issuing = (changes: object) => {
      const remote = {
        refuses: () => false,
        request: async (url: string) => {
          calls.push(url);
          const body = Buffer.from(served.get(url) ?? '');
          return { status: served.has(url) ? 200 : 404, contentType: 'application/jwt', body };
        },
      } as unknown as AdministrationWorld['remote'];
      const listSigners = new ListSigners({ ...world, remote });
      const body = IssuanceConfigurationBody.parse({ display: DISPLAY, ...changes });
      return new ReplaceIssuanceConfiguration({ ...world, remote, listSigners }).execute(caller(), body);
    };
    before(async () => {
      operator = await certify({ name: 'Operator' });
    });
    beforeEach(() => {
      calls = [];
      const seconds = Math.floor(world.clock.now().getTime() / 1000);
      served = new Map([FIRST, SECOND].map((uri) => [uri, trustList({ entities: [], signer: operator }, seconds)]));
    });

    it('pins their signers, and returns them', async () => {
      const written = await issuing({ walletProviderTrustLists: [FIRST, SECOND] });
      expect(written.walletProviderTrustListCertificates).to.deep.equal([pem(operator)]);
      expect(calls).to.deep.equal([FIRST, SECOND]);
    });
    it('keeps pinned signers, and fetches only new lists', async () => {
      await issuing({ walletProviderTrustLists: [FIRST] });
      calls = [];
      const again = await issuing({ walletProviderTrustLists: [FIRST], batchSize: 3 });
      expect([calls, again.walletProviderTrustListCertificates]).to.deep.equal([[], [pem(operator)]]);
      await issuing({ walletProviderTrustLists: [FIRST, SECOND] });
      expect(calls).to.deep.equal([SECOND]);
    });
    it('keeps given certificates, and accepts an unavailable list with them', async () => {
      const walletProviderTrustListCertificates = [pem(operator)];
      served.delete(FIRST);
      const written = await issuing({ walletProviderTrustLists: [FIRST], walletProviderTrustListCertificates });
      expect(written.walletProviderTrustListCertificates).to.deep.equal([pem(operator)]);
      calls = [];
      await issuing({ walletProviderTrustLists: [FIRST], walletProviderTrustListCertificates });
      expect(calls, 'a list that is stored already').to.deep.equal([]);
    });

    describe('of which one names credential issuers', () => {
      const OWN = 'https://id.example/base/acme/trust-list/issuers';
      const WALLET_TYPE = 'http://uri.etsi.org/19602/SvcType/WalletSolution/Issuance';
      const signedList = (...types: string[]) => {
        const services = types.map((type) => ({ type, certificates: [operator.certificate] }));
        const entities = [{ name: 'Listed', services }];
        return trustList({ entities, signer: operator }, Math.floor(world.clock.now().getTime() / 1000));
      };
      const failureOf = (changes: object) => issuing(changes).catch((error: unknown) => error);
      const expectRejected = async (changes: object, index = 0) => {
        const failure = (await failureOf(changes)) as Failure;
        expect(failure).to.be.instanceOf(Failure);
        const [{ path = '', message = '' } = {}] = failure.details.errors ?? [];
        expect(path).to.equal(`walletProviderTrustLists.${index}`);
        expect(message).to.include('not a list of wallet providers').and.include(WALLET_TYPE);
      };

      it('rejects it by name when its signer is looked up', async () => {
        served.set(SECOND, signedList('PID/Issuance', 'PID/Revocation'));
        await expectRejected({ walletProviderTrustLists: [FIRST, SECOND] }, 1);
        expect(await stored()).to.equal(undefined);
      });
      it('rejects it when the document gives the certificate of its signer', async () => {
        served.set(FIRST, signedList('EAA/Issuance'));
        const walletProviderTrustListCertificates = [pem(operator)];
        await expectRejected({ walletProviderTrustLists: [FIRST], walletProviderTrustListCertificates });
      });
      it('rejects a list of revocation services alone', async () => {
        served.set(FIRST, signedList('WalletSolution/Revocation'));
        await expectRejected({ walletProviderTrustLists: [FIRST] });
      });
      it('rejects a list in XML', async () => {
        const now = world.clock.now();
        const type = 'http://uri.etsi.org/TrstSvc/Svctype/EAA/Q';
        const services = [{ type, certificates: [operator.certificate], since: now.toISOString() }];
        const issuedAt = new Date(now.getTime() - 60_000).toISOString();
        served.set(FIRST, signXml(xmlList({ issuedAt, services }), operator));
        const walletProviderTrustListCertificates = [pem(operator)];
        await expectRejected({ walletProviderTrustLists: [FIRST], walletProviderTrustListCertificates });
      });
      it('rejects a list of this service, with and without certificates', async () => {
        const info = { name: 'Acme', country: 'DE', streetAddress: 'Weg 1' };
        const entities = [{ type: 'internal', issuerKeyChainId: 'signing', info }];
        const list = TrustListReplacement.parse({ id: 'issuers', entities });
        await new CreateTrustList(world).execute(caller(), list);
        await expectRejected({ walletProviderTrustLists: [OWN] });
        const walletProviderTrustListCertificates = [pem(operator)];
        await expectRejected({ walletProviderTrustLists: [OWN], walletProviderTrustListCertificates });
      });
      it('accepts a list that has wallet providers among others', async () => {
        served.set(FIRST, signedList('PID/Issuance', 'WalletSolution/Issuance'));
        served.set(SECOND, signedList('WalletProvider'));
        expect(await endOf(issuing({ walletProviderTrustLists: [FIRST, SECOND] }))).to.equal('done');
      });
      it('preserves one that an earlier release stored', async () => {
        await issuing({ walletProviderTrustLists: [FIRST] });
        served.set(FIRST, signedList('PID/Issuance'));
        expect(await endOf(issuing({ walletProviderTrustLists: [FIRST], batchSize: 3 }))).to.equal('done');
      });
    });
    it('rejects lists that are unavailable, and missing lists of this service', async () => {
      served.delete(SECOND);
      expect(await endOf(issuing({ walletProviderTrustLists: [FIRST, SECOND] }))).to.equal('invalid_input walletProviderTrustLists.1');
      const own = 'https://id.example/base/acme/trust-list/w';
      expect(await endOf(issuing({ walletProviderTrustLists: [own] }))).to.equal('invalid_input walletProviderTrustLists.0');
      served.set(FIRST, served.get(FIRST)?.slice(0, -4) ?? '');
      expect(await endOf(issuing({ walletProviderTrustLists: [FIRST] }))).to.equal('invalid_input walletProviderTrustLists.0');
    });
  });

  const internal = 'https://db.internal/';
  const refused: [string, object, string][] = [
    ['a preferred server that is none of the tenant', { preferredAuthServer: EXTERNAL }, 'preferredAuthServer'],
    [
      'the chained server preferred while it is off',
      { chainedAs: { ...chainedAs, enabled: false }, preferredAuthServer: CHAINED_SERVER },
      'preferredAuthServer',
    ],
    ['an unknown key chain', { signingKeyId: 'nothing' }, 'signingKeyId'],
    ['a key chain for something else', { signingKeyId: 'access' }, 'signingKeyId'],
    [
      'a key chain for something else at the chained server',
      { chainedAs: { ...chainedAs, token: { signingKeyId: 'access' } } },
      'chainedAs.token.signingKeyId',
    ],
    ['an external server that may not be called', { authServers: [EXTERNAL, internal] }, 'authServers.1'],
    [
      'an upstream provider that may not be called',
      { chainedAs: { upstream: { ...UPSTREAM, issuer: internal } } },
      'chainedAs.upstream.issuer',
    ],
    ['a list that may not be called', { walletProviderTrustLists: [internal] }, 'walletProviderTrustLists.0'],
    ['keys of a wallet that may not be called', { walletClients: [{ ...WALLET, jwks_uri: internal }] }, 'walletClients.0.jwks_uri'],
    [
      'the placeholder of a secret that nobody stored',
      { chainedAs: { upstream: { ...UPSTREAM, clientSecret: '***' } } },
      'chainedAs.upstream.clientSecret',
    ],
  ];
  for (const [what, changes, path] of refused) {
    it(`rejects ${what}, and is unchanged`, async () => {
      const before = await put({ batchSize: 3 });
      expect(await endOf(put(changes))).to.equal(`invalid_input ${path}`);
      expect(await stored()).to.deep.equal(before);
    });
  }

  it('names the servers that could be preferred', async () => {
    const refusal = await put({ authServers: [EXTERNAL], preferredAuthServer: 'https://x.example' }).catch((error: Failure) => error);
    expect(refusal).to.be.instanceOf(Failure);
    const [{ message = '' } = {}] = (refusal as Failure).details.errors ?? [];
    expect(message).to.include(EXTERNAL).and.to.include('/acme');
  });

  const documents: [string, object, string][] = [
    ['without display', { display: undefined }, 'display'],
    ['with a language twice', { display: [DISPLAY[0], DISPLAY[0]] }, 'display'],
    ['with a language twice, in other letters', { display: [DISPLAY[0], { ...DISPLAY[0], locale: 'EN' }] }, 'display'],
    ['with a batch of a thousand', { batchSize: 1000 }, 'batchSize'],
    ['with a foreign preferred server', { preferredAuthServer: 'https://x.example' }, 'preferredAuthServer'],
    [
      'with a chained server preferred that is switched off',
      { preferredAuthServer: CHAINED_SERVER, chainedAs: { ...chainedAs, enabled: false } },
      'preferredAuthServer',
    ],
    ['with a chained server without upstream', { chainedAs: { enabled: true } }, 'chainedAs.upstream'],
    [
      'with a chained server that signs with nothing',
      { chainedAs: { ...chainedAs, token: { signingKeyId: 'nothing' } } },
      'chainedAs.token.signingKeyId',
    ],
    [
      'with the mask of a secret that is unknown',
      { chainedAs: { upstream: { ...UPSTREAM, clientSecret: '***' } } },
      'chainedAs.upstream.clientSecret',
    ],
    ['with a server that is not an address', { authServers: ['as.example'] }, 'authServers.0'],
    ['with a server that has a query', { authServers: ['https://as.example?a=b'] }, 'authServers.0'],
    ['with a server that has an empty fragment', { authServers: ['https://as.example/#'] }, 'authServers.0'],
    [
      'with an upstream provider that has a query',
      { chainedAs: { upstream: { ...UPSTREAM, issuer: 'https://login.example?' } } },
      'chainedAs.upstream.issuer',
    ],
    ['with a server twice', { authServers: ['https://a.example', 'https://a.example'] }, 'authServers'],
    [
      'with a certificate that is invalid',
      { walletProviderTrustListCertificates: [PEM_OF_NOTHING] },
      'walletProviderTrustListCertificates.0',
    ],
    ['with a wallet without keys', { walletClients: [{ client_id: 'w' }] }, 'walletClients.0'],
    ...BAD_KEYS.map(([what, jwk]): [string, object, string] => [
      `with a wallet whose key ${what}`,
      { walletClients: [{ client_id: 'w', jwks: { keys: [newKey().jwk, jwk] } }] },
      'walletClients.0.jwks.keys.1',
    ]),
    ['with encrypted responses alone', { requestEncryption: 'off' }, 'responseEncryption'],
  ];
  for (const [what, changes, path] of documents) {
    it(`is not written ${what}`, async () => {
      const body = { display: [{ name: 'Bad', locale: 'en' }], ...changes };
      const write = async () => new ReplaceIssuanceConfiguration(world).execute(caller(), parseInput(IssuanceConfigurationBody, body));
      const end = await endOf(write());
      expect(`${end}.`.startsWith(`invalid_input ${path}.`), end).to.equal(true);
      expect(await stored()).to.equal(undefined);
    });
  }
});
