import { generateKeyPairSync, hash } from 'node:crypto';
import { expect } from 'chai';
import {
  effectiveIssuance,
  type IssuanceConfiguration,
  IssuanceConfigurationBody,
  isPreferenceKnown,
  withDefaults,
} from '../../../domain/issuance/issuance-configuration.ts';
import { keepWalletListPins } from '../../../domain/issuance/kept-list-pins.ts';
import { WalletClient } from '../../../domain/issuance/wallet-client.ts';
import { registrationOf } from '../../../domain/issuance/wallet-provider.ts';
import { newKey } from '../../support/raw-wallet.ts';
import { type Certified, certify, pem } from '../../support/test-certificates.ts';
import { anIssuance, DISPLAY, ISSUER } from './kit.ts';

describe('An issuance configuration', () => {
  it('that was stored before a member existed has its default, and keeps what it says', () => {
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
    expect(withDefaults(stored)).to.deep.include({
      batchSize: 7,
      authServers: [],
      requestEncryption: 'optional',
    });
  });

  it('follows its profile whatever was stored, the chained server included', () => {
    const upstream = { issuer: 'https://login.example', clientId: 'c' };
    const stored = (chainedAs: object | null) =>
      effectiveIssuance(
        IssuanceConfigurationBody.parse({
          ...{ display: DISPLAY, dPopRequired: false, chainedAs },
          attestationChallenge: 'optional',
        }),
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
    it(`is refused with ${what}`, () => {
      const { error } = IssuanceConfigurationBody.safeParse({ display: DISPLAY, ...changes });
      expect(error?.issues.map((issue) => issue.path.join('.'))).to.deep.equal([path]);
    });
  }

  it('may have several clients, another server alone, and all encrypted', () => {
    const walletClients = [client, { ...client, client_id: 'other' }];
    const encrypted = { requestEncryption: 'required', responseEncryption: 'required' };
    const elsewhere = { authServers: ['https://as.example'], builtInAs: { enabled: false } };
    for (const changes of [{ walletClients }, encrypted, elsewhere]) {
      const { error } = IssuanceConfigurationBody.safeParse({ display: DISPLAY, ...changes });
      expect(error?.issues).to.equal(undefined);
    }
  });

  it('knows the server that it prefers, if any', () => {
    const known = (preferredAuthServer: string | null | undefined) =>
      isPreferenceKnown(ISSUER, {
        ...anIssuance({ authServers: ['https://as.example'] }),
        preferredAuthServer,
      });
    expect([null, undefined, 'built-in', ISSUER, 'https://as.example'].map(known)).to.deep.equal(
      Array(5).fill(true),
    );
    expect(known('https://else.example')).to.equal(false);
  });

  it('keeps who was pinned for its lists of wallet providers, unless it says otherwise or drops one', () => {
    const of = (walletProviderTrustLists: string[], ...walletProviderTrustListCertificates: string[]) => ({
      walletProviderTrustLists,
      walletProviderTrustListCertificates,
    });
    const before = of(['a', 'b'], 'pin');
    const kept = (...given: Parameters<typeof of>) =>
      keepWalletListPins(of(...given), before).walletProviderTrustListCertificates;
    expect(kept(['b', 'a', 'c'])).to.deep.equal(['pin']);
    expect(kept(['a', 'b'], 'other')).to.deep.equal(['other']);
    expect(kept(['a'])).to.deep.equal([]);
    expect(keepWalletListPins(of(['a']), undefined)).to.deep.equal(of(['a']));
    expect(keepWalletListPins(of([]), of([], 'pin'))).to.deep.equal(of([]));
  });
});

describe('A wallet that is registered', () => {
  const jwkOf = (key: object) => ({ client_id: 'wallet', jwks: { keys: [key] } });
  const takes = (key: object) => WalletClient.safeParse(jwkOf(key)).success;
  const { jwk } = newKey();
  const edwards = generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' });

  it('has keys for the algorithms that they name', () => {
    for (const key of [jwk, { ...jwk, alg: 'ES256', use: 'sig' }, edwards]) expect(takes(key)).to.equal(true);
    for (const alg of ['EdDSA', 'Ed25519']) expect(takes({ ...edwards, alg }), alg).to.equal(true);
  });

  it('has no keys for others', () => {
    for (const alg of ['EdDSA', 'Ed25519', 'ES384', 'none'])
      expect(takes({ ...jwk, alg }), alg).to.equal(false);
    for (const key of [
      { ...jwk, use: 'enc' },
      { ...jwk, d: 'x' },
      { ...edwards, alg: 'ES256' },
    ]) {
      expect(takes(key)).to.equal(false);
    }
  });
});

describe('A wallet provider that is registered', () => {
  let root: Certified;
  let leaf: Certified;
  let other: Certified;
  before(async () => {
    root = await certify({ name: 'Root', ca: true });
    leaf = await certify({ name: 'Leaf', by: root });
    other = await certify({ name: 'Other', ca: true });
  });
  const found = (registered: Certified, clientId = 'wallet') => {
    const redirect_uris = ['https://wallet.example/cb'];
    const provider = { certificates: [pem(registered)], client_ids: ['wallet'], redirect_uris };
    const anchor = hash('sha256', Buffer.from(root.certificate, 'base64'), 'base64url');
    return registrationOf([provider], clientId, { chain: [leaf.certificate], anchor })?.redirectUris;
  };

  it('is known by the certificate that signs, or by the one that vouches for that', () => {
    expect(found(leaf)).to.deep.equal(['https://wallet.example/cb']);
    expect(found(root)).to.deep.equal(['https://wallet.example/cb']);
  });

  it('has its names to itself, and no other ones', () => {
    expect(found(other)).to.equal(undefined);
    expect(found(other, 'another wallet')).to.deep.equal([]);
  });
});
